#!/usr/bin/env bash
# Packages: SimpleITK 2.5.7 reading a DICOM segmentation that highdicom 0.28.2 writes.
#
# A segmentation in DICOM stores, by default, only slices that hold an organ, each with its
# position. SimpleITK reads those that are there as neighbours, without an error or a
# warning. Where they lie equally far apart, that distance is the spacing: of a CT with
# slices 5 mm apart, two that lie 15 mm apart come out as such. Where they do not, the
# spacing is 1 mm, and the map is mirrored: the first slice is the uppermost, its position
# is the origin, and the direction says that the next one lies above it. Labels come out
# as 255.
#
# Why it matters: predictions are turned from DICOM into NIfTI in two lines, and their
# volumes, distances and places are then wrong by whole factors.
#
# Usage: findings/simpleitk-dicom-seg-gap.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  SimpleITK==2.5.7 highdicom==0.28.2

cat >"$work/read.py" <<'PYTHON'
import sys

import highdicom as hd
import numpy as np
import SimpleITK as sitk
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sr.codedict import codes
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian, generate_uid

SLICE_MM = 5.0
study, series, frame = generate_uid(), generate_uid(), generate_uid()


def slice_of_ct(number):
    ct = Dataset()
    ct.file_meta = FileMetaDataset()
    ct.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ct.file_meta.MediaStorageSOPClassUID = ct.SOPClassUID = CTImageStorage
    ct.file_meta.MediaStorageSOPInstanceUID = ct.SOPInstanceUID = generate_uid()
    ct.StudyInstanceUID, ct.SeriesInstanceUID, ct.FrameOfReferenceUID = study, series, frame
    ct.PatientID = ct.PatientName = "case"
    for name in ("PatientBirthDate", "PatientSex", "AccessionNumber", "Manufacturer"):
        setattr(ct, name, "")
    ct.ReferringPhysicianName = ct.PositionReferenceIndicator = ""
    ct.StudyDate, ct.StudyTime, ct.StudyID, ct.Modality = "20200101", "000000", "1", "CT"
    ct.SeriesNumber, ct.InstanceNumber = 1, number + 1
    ct.ImagePositionPatient = [0, 0, SLICE_MM * number]
    ct.ImageOrientationPatient, ct.PixelSpacing = [1, 0, 0, 0, 1, 0], [1, 1]
    ct.SliceThickness, ct.Rows, ct.Columns = SLICE_MM, 8, 8
    ct.SamplesPerPixel, ct.PhotometricInterpretation = 1, "MONOCHROME2"
    ct.BitsAllocated, ct.BitsStored, ct.HighBit, ct.PixelRepresentation = 16, 16, 15, 0
    ct.PixelData = bytes(2 * 8 * 8)
    return ct


print("the CT: 6 slices, 5 mm apart, from 0 to 25 mm")
for slices in ([2, 5], [1, 2, 5]):
    labels = np.zeros((6, 8, 8), np.uint8)
    for number in slices:
        labels[number, 1, : number + 1] = 1
    liver = hd.seg.SegmentDescription(
        *(1, "liver", codes.SCT.Organ, codes.SCT.Liver),
        hd.seg.SegmentAlgorithmTypeValues.MANUAL,
    )
    seg = hd.seg.Segmentation(
        [slice_of_ct(number) for number in range(6)],
        labels,
        hd.seg.SegmentationTypeValues.BINARY,
        [liver],
        *(generate_uid(), 2, generate_uid(), 1, "maker", "model", "1", "1"),
    )
    seg.save_as(sys.argv[1])
    image = sitk.ReadImage(sys.argv[1])
    array = sitk.GetArrayFromImage(image)
    print("slices", slices, "with", [number + 1 for number in slices], "voxels")
    print("  read: spacing", image.GetSpacing()[2], "origin", image.GetOrigin()[2], end=" ")
    print("direction", image.GetDirection()[8], "voxels", np.sum(array > 0, (1, 2)).tolist())
    print("  values", np.unique(array).tolist())
PYTHON
said=$("$work/venv/bin/python" -W ignore "$work/read.py" "$work/seg.dcm" 2>&1)
echo "$said"

grep -qF "read: spacing 15.0 origin 25.0 direction -1.0 voxels [6, 3]" <<<"$said"
grep -qF "read: spacing 1.0 origin 25.0 direction 1.0 voxels [6, 3, 2]" <<<"$said"
grep -qF "values [0, 255]" <<<"$said"
