"""predictions.json as the platform writes it, and the outputs of its jobs."""

import json

from tests.builders import metaimage_bytes, organ_boxes, write_file


def interface(slug, path):
    return {
        "title": slug,
        "description": "",
        "slug": slug,
        "kind": "Image",
        "pk": 12,
        "default_value": None,
        "super_kind": "Image",
        "relative_path": path,
        "overlay_segments": [],
        "look_up_table": None,
    }


def value(slug, path, name, *, key="interface"):
    return {
        "pk": 1,
        "value": None,
        "file": None,
        "image": {"pk": "1f6d", "name": name},
        key: interface(slug, path),
    }


def job(pk, image, *, key="interface", **changes):
    """A job on an image, with an input that is no image before it."""
    text = {"pk": 3, "value": 1.5, "file": None, "image": None}
    return {
        "pk": pk,
        "url": f"https://example.org/{pk}",
        "api_url": f"https://example.org/api/{pk}",
        "algorithm_image": "Algorithm Image 7",
        "status": "Succeeded",
        "exec_duration": "P0DT00H01M23.456000S",
        "invoke_duration": None,
        "inputs": [
            {**text, key: interface("age", "age.json")},
            value("ct-image", "images/ct", image, key=key),
        ],
        "outputs": [value("organs", "images/organs", "organs", key=key)],
        **changes,
    }


def write_jobs(folder, jobs, outputs=None):
    write_file(folder / "inputs.json", "[]")
    (folder / "predictions.json").write_text(json.dumps(jobs))
    for item in jobs:
        where = folder / item["pk"] / "output" / "images" / "organs"
        where.mkdir(parents=True)
        content = (outputs or {}).get(item["pk"], metaimage_bytes(organ_boxes()))
        (where / f"{item['pk']}-out.mha").write_bytes(content)
    return folder
