#!/bin/sh
# Apptainer for tests, which plays by a script, and the programs that make a box.
#
# It is started under the names of these programs in a folder of its own, needs no
# namespaces, and keeps everything in STATE beside that. What tests script:
#
#     STATE/no-box          why unshare can make no namespaces
#     STATE/fatal           why Apptainer can run nothing
#     STATE/calibration     what /calibrate of our own image writes
#     predict.sh            of a team's image is really run, as a process of this
#                           computer
#
# STATE/calls has each command of Apptainer in a line, and STATE/entered those that are
# run in a box; STATE/variables what Apptainer got of the last one.
set -u
program=${0##*/}
state=${0%/*}/state

# Process 1 of a box: all that has entered it ends with it.
be_box() {
    if [ -f "$state/no-box" ]; then
        cat "$state/no-box" >&2
        exit 1
    fi
    echo ready
    read -r _
    for file in "$state"/inside/*; do
        [ -f "$file" ] || continue
        kill -9 "-${file##*/}" 2> /dev/null
        rm -f "$file"
    done
    exit 0
}

enter_box() {
    while [ "$1" != -- ]; do shift; done
    shift
    touch "$state/inside/$$"
    echo "$*" >> "$state/entered"
    case $* in
        *unpack_layers.py*)
            while [ "${1##*/}" != unpack_layers.py ]; do shift; done
            folder=$2
            shift 2
            for layer in "$@"; do tar -xf "$layer" -C "$folder" || exit 1; done
            ;;
        *) "$@" ;;
    esac
    status=$?
    rm -f "$state/inside/$$"
    exit "$status"
}

run_image() {
    env > "$state/variables"
    inputs='' outputs='' image=''
    shift 2
    while [ -z "$image" ]; do
        case $1 in
            --pwd | --overlay | --no-mount) shift ;;
            --mount)
                source=${2#*source=}
                case $2 in
                    *=/workspace/inputs,ro | *=/input,ro) inputs=${source%%,*} ;;
                    *=/workspace/outputs | *=/output) outputs=${source%%,*} ;;
                esac
                shift
                ;;
            --*) ;;
            *) image=$1 ;;
        esac
        shift
    done
    if [ -f "$state/fatal" ]; then
        echo "FATAL:   $(cat "$state/fatal")" >&2
        exit 255
    fi
    case $1 in
        /nothing) exit 0 ;;
        /calibrate) exec cat "$state/calibration" ;;
    esac
    cd "$image/workspace" || exit 1
    sed "s,/workspace/inputs,$inputs,g; s,/workspace/outputs,$outputs,g" \
        predict.sh > "$state/predict.sh"
    exec sh "$state/predict.sh"
}

case $program in
    unshare) be_box ;;
    nsenter) enter_box "$@" ;;
    prlimit) shift 2; exec "$@" ;;
    taskset) shift 2; exec "$@" ;;
    apptainer)
        echo "$*" >> "$state/calls"
        [ "$1" != --version ] || { echo "apptainer version 1.4.5"; exit 0; }
        run_image "$@"
        ;;
esac
