#!/bin/sh
# An engine for tests, which plays by a script: the commands of docker that the kit
# calls, with plain folders and processes for images, volumes and containers.
#
# It is started under any name in a folder of its own, and keeps everything in STATE
# beside that. What tests script:
#
#     STATE/info.json       what `docker info` says
#     STATE/fail/COMMAND    what COMMAND (such as create, or image-load) writes to
#                           stderr before it fails
#     STATE/calibration     what /calibrate of our own image writes
#     STATE/gpus            a mark: it can give a container a GPU
#     algorithm.sh          at the top of an image is what it starts by itself
#     predict.sh            of a team's image is really run, as a process of this
#                           computer. It may write to $SCRIPTED, a folder:
#                           out-of-memory (a mark) and error (why it did not start)
#
# STATE/calls has each command in a line.
set -u
state=${0%/*}/state
cd "$state" || exit 1
echo "$*" >> calls

die() {
    echo "$*" >&2
    exit 1
}

# What is scripted to fail, does: by its first word, or by its first two.
for scripted in "fail/${1-}" "fail/${1-}-${2-}"; do
    [ ! -f "$scripted" ] || { cat > /dev/null; die "$(cat "$scripted")"; }
done

# --- Images: images/ID is a file system, tags/TAG has the ID -----------------------

# Sets $image to the ID of an image, by its ID or its tag.
find_image() { # NAME
    image=${1#sha256:}
    [ ! -f "tags/$1" ] || read -r image < "tags/$1"
    [ -d "images/$image" ] || die "Error: No such image: $1"
}

# Sets $tags to the tags of $image, in quotes and with commas, and $count.
find_tags() {
    tags='' count=0
    for file in tags/*; do
        [ -f "$file" ] && read -r id < "$file" && [ "$id" = "$image" ] || continue
        tags="$tags${tags:+,}\"${file#tags/}\"" count=$((count + 1))
    done
}

# What is not there is left out, and told by the exit status.
inspect_images() { # FORMAT NAME ...
    format=$1 missing=0
    shift
    for name in "$@"; do
        (find_image "$name") 2> /dev/null || { missing=1 && continue; }
        find_image "$name"
        find_tags
        case $format in
            *Id*RepoTags*) echo "sha256:$image [$tags]" ;;
            *len*) echo "$count" ;;
            *) die "unknown format: $format" ;;
        esac
    done
    return "$missing"
}

load_image() {
    loading=loading-$$
    mkdir "$loading"
    tar -xf - -C "$loading" || die "unexpected EOF"
    read -r manifest < "$loading/manifest.json" || [ -n "$manifest" ]
    image=${manifest##*\"Config\":\"blobs/sha256/}
    image=${image%%\"*}
    layers=${manifest##*\"Layers\":[}
    layers=${layers%%]*}
    mkdir -p "images/$image"
    IFS='",'
    for layer in $layers; do
        [ -z "$layer" ] || tar -xf "$loading/$layer" -C "images/$image"
    done
    rm -rf "$loading"
}

import_image() { # TAG
    cat > "import-$$"
    image=$(sha256sum < "import-$$")
    image=${image%% *}
    mkdir -p "images/$image"
    tar -xf "import-$$" -C "images/$image"
    rm "import-$$"
    echo "$image" > "tags/$1"
}

remove_image() { # NAME
    find_image "$1"
    rm -f "tags/$1"
    find_tags
    [ "$count" != 0 ] || rm -rf "images/$image"
}

# --- Containers: containers/ID/made has what was asked for, a line each ------------

# Sets $id to a new ID, as long as an engine's, also beside others that make one.
new_id() {
    read -r number < last-id
    number=$((number + 1))
    while ! mkdir "ids/$number" 2> /dev/null; do number=$((number + 1)); done
    echo "$number" > "last-id-$$" && mv "last-id-$$" last-id
    id=0000000000000000000000000000000000000000000000000000000000000000$number
    while [ ${#id} -gt 64 ]; do id=${id#0}; done
}

create_container() { # FLAG ... IMAGE COMMAND ...
    label='' inputs='' outputs='' model='' error=''
    while :; do
        case $1 in
            --label) label=$2 ;;
            --runtime) [ "$2" = runc ] || die "unknown or invalid runtime name: $2" ;;
            --gpus)
                [ -f gpus ] ||
                    error='could not select device driver with capabilities: gpu'
                ;;
            --volume)
                case $2 in
                    *:/workspace/inputs/:ro | *:/input/:ro) inputs=${2%%:*} ;;
                    *:/opt/ml/model/:ro) model=${2%%:*} ;;
                    *) outputs=${2%%:*} ;;
                esac
                ;;
            --no-healthcheck | --read-only) set -- "" "$@" ;;
            --*) ;;
            *) break ;;
        esac
        shift 2
    done
    find_image "$1"
    shift
    new_id
    mkdir "containers/$id"
    echo "$label" > "containers/$id/label"
    echo created > "containers/$id/status"
    [ -z "$error" ] || echo "$error" > "containers/$id/error"
    printf '%s\n' "$image" "$inputs" "$outputs" "$model" "$*" > "containers/$id/made"
    echo "$id"
}

# Sets $image, $inputs, $outputs, $model, $command to what a container was made with.
read_made() { # ID
    {
        read -r image
        read -r inputs
        read -r outputs
        read -r model
        read -r command
    } < "containers/$1/made"
    outputs=$state/volumes/$outputs/data
}

start_attached() { # ID
    read_made "$1"
    container=$state/containers/$1 status=0 error=''
    begin=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)
    echo running > "$container/status"
    if [ "$command" = /calibrate ]; then
        cp calibration "$container/log"
    elif [ "$command" != /nothing ] && [ ! -f "$container/error" ]; then
        program=workspace/predict.sh
        [ -n "$command" ] || program=algorithm.sh
        sed "s,/workspace/inputs,$inputs,g; s,/workspace/outputs,$outputs,g
            s,/input/,$inputs/,g; s,/output/,$outputs/,g
            s,/opt/ml/model/,${model:-/no-model}/,g" \
            "images/$image/$program" > "$container/predict.sh"
        cd "images/$image" && { [ -z "$command" ] || cd workspace; } || exit 1
        SCRIPTED=$container setsid sh "$container/predict.sh" > "$container/log" 2>&1 &
        echo $! > "$container/process"
        wait $! 2> /dev/null || status=$?
    fi
    [ ! -f "$container/error" ] || read -r error < "$container/error"
    [ ! -f "$container/out-of-memory" ] && is_oom=false || is_oom=true
    echo "{\"Status\": \"exited\", \"ExitCode\": $status, \"OOMKilled\": $is_oom," \
        "\"Error\": \"$error\", \"StartedAt\": \"$begin\"," \
        "\"FinishedAt\": \"$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)\"}" > "$container/state"
    echo exited > "$container/status"
    exit "$status"
}

kill_container() { # ID
    [ -f "containers/$1/process" ] || return 0
    read -r process < "containers/$1/process"
    kill -9 "-$process" 2> /dev/null
}

# It is moved first: whatever waits for its end may still write there.
remove_container() { # ID
    kill_container "$1"
    mv "containers/$1" "gone-$1" 2> /dev/null && rm -rf "gone-$1"
}

# --- Lists -------------------------------------------------------------------------

# Whether a file is not asked for, or has a line.
has() { # FILE LINE
    [ -z "$2" ] || { read -r line < "$1" && [ "$line" = "$2" ]; }
}

# Names of what lies in a folder, by the filters that follow `--filter`.
list() { # FOLDER FLAG ...
    folder=$1 label='' id='' status=''
    shift
    for word in "$@"; do
        case $word in
            label=*) label=${word#label=} ;;
            id=*) id=${word#id=} ;;
            status=*) status=${word#status=} ;;
        esac
    done
    for found in "$folder"/*; do
        [ -d "$found" ] || continue
        [ -z "$id" ] || [ "${found##*/}" = "$id" ] || continue
        if has "$found/label" "$label" && has "$found/status" "$status"; then
            echo "${found##*/}"
        fi
    done
}

case "$1 ${2-}" in
    "info "*) cat info.json ;;
    "version "*) cat version.json ;;
    "image inspect") shift 3; inspect_images "$@" ;;
    "image load") load_image ;;
    "image rm")
        shift 2
        [ "$1" != --force ] || shift
        missing=0
        for name in "$@"; do (remove_image "$name") || missing=1; done
        exit "$missing"
        ;;
    "tag "*) echo "$2" > "tags/$3" ;;
    "import "*) import_image "$3" ;;
    "volume create")
        new_id
        mkdir -p "volumes/$id/data"
        echo "$6" > "volumes/$id/label"
        echo "$id"
        ;;
    "volume ls") list volumes "$@" ;;
    "volume rm") shift 3; for id in "$@"; do rm -rf "volumes/$id"; done ;;
    "create "*) shift; create_container "$@" ;;
    "start --attach") start_attached "$3" ;;
    "run --detach")
        shift 2
        create_container "$@"
        echo running > "containers/$id/status"
        ;;
    "kill "*) kill_container "$2" ;;
    "inspect --format") cat "containers/$4/state" ;;
    "logs "*) [ ! -f "containers/$4/log" ] || cat "containers/$4/log" ;;
    "ps "*) list containers "$@" ;;
    "rm "*)
        shift 3
        for id in "$@"; do remove_container "$id"; done
        ;;
    "cp "*) read_made "${2%%:*}"; tar -cf - -C "$outputs" . ;;
    *) die "unknown command: $1" ;;
esac
