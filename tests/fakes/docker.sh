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
#     STATE/hang/COMMAND    a mark: it never ends
#     STATE/volumes/ID/hang a mark: it is never removed
#     STATE/gpus            a mark: it can give a container a GPU
#     algorithm.sh          at the top of an image is what it starts by itself
#     predict.sh            of a team's image is really run, as a process of this
#                           computer. It may write to $SCRIPTED, a folder:
#                           out-of-memory (a mark) and error (why it did not start)
#
# STATE/calls has each command in a line.
#
# A real engine goes on when the program that asks it is killed. This one is that program,
# so whatever it makes is there whole or not at all: made in new-PID, and then moved; and
# what it removes is moved to gone-PID first, as a team's process may still write there.
set -u
state=${0%/*}/state
cd "$state" || exit 1
echo "$*" >> calls

new=new-$$ gone=gone-$$

die() {
    echo "$*" >&2
    exit 1
}

# What is scripted to fail, does: by its first word, or by its first two.
for scripted in "fail/${1-}" "fail/${1-}-${2-}"; do
    [ ! -f "$scripted" ] || { cat > /dev/null; die "$(cat "$scripted")"; }
done

for scripted in "hang/${1-}" "hang/${1-}-${2-}"; do
    [ ! -f "$scripted" ] || exec sleep 600
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
    mkdir -p "$new/image"
    tar -xf - -C "$new" || die "unexpected EOF"
    read -r manifest < "$new/manifest.json" || [ -n "$manifest" ]
    image=${manifest##*\"Config\":\"blobs/sha256/}
    image=${image%%\"*}
    layers=${manifest##*\"Layers\":[}
    layers=${layers%%]*}
    IFS='",'
    for layer in $layers; do
        [ -z "$layer" ] || tar -xf "$new/$layer" -C "$new/image"
    done
    keep_image
    rm -rf "$new"
}

# Makes $new/image the image $image, unless there is one: also beside others that do so.
keep_image() {
    [ -d "images/$image" ] || mv -T "$new/image" "images/$image" 2> /dev/null ||
        [ -d "images/$image" ] || die "cannot keep $image"
}

tag() { # ID NAME
    echo "$1" > "$new-tag"
    mv "$new-tag" "tags/$2"
}

import_image() { # TAG
    mkdir -p "$new/image"
    cat > "$new/tar"
    image=$(sha256sum < "$new/tar")
    image=${image%% *}
    tar -xf "$new/tar" -C "$new/image"
    # In this order: who removes it meanwhile, for another tag, sees that it has this one.
    tag "$image" "$1"
    keep_image
    rm -rf "$new"
}

remove() { # FOLDER
    mv "$1" "$gone" 2> /dev/null && rm -rf "$gone"
}

remove_image() { # NAME
    image=${1#sha256:}
    [ ! -f "tags/$1" ] || read -r image < "tags/$1"
    rm -f "tags/$1"
    find_image "$image"
    find_tags
    [ "$count" != 0 ] || remove "images/$image"
}

# --- Containers: containers/ID/made has what was asked for, a line each ------------

# Sets $id to a new ID, as long as an engine's, also beside others that make one.
new_id() {
    read -r number < last-id
    number=$((number + 1))
    while ! mkdir "ids/$number" 2> /dev/null; do number=$((number + 1)); done
    echo "$number" > "$new-id" && mv "$new-id" last-id
    id=0000000000000000000000000000000000000000000000000000000000000000$number
    while [ ${#id} -gt 64 ]; do id=${id#0}; done
}

create_container() { # STATUS FLAG ... IMAGE COMMAND ...
    status=$1
    shift
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
    mkdir "$new"
    echo "$label" > "$new/label"
    echo "$status" > "$new/status"
    [ -z "$error" ] || echo "$error" > "$new/error"
    printf '%s\n' "$image" "$inputs" "$outputs" "$model" "$*" > "$new/made"
    mv "$new" "containers/$id"
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
    if [ "$command" != /nothing ] && [ ! -f "$container/error" ]; then
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

remove_container() { # ID
    kill_container "$1"
    remove "containers/$1"
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
    "tag "*) tag "$2" "$3" ;;
    "import "*) import_image "$3" ;;
    "volume create")
        new_id
        mkdir -p "$new/data"
        echo "$6" > "$new/label"
        mv "$new" "volumes/$id"
        echo "$id"
        ;;
    "volume ls") list volumes "$@" ;;
    "volume rm")
        shift 3
        for id in "$@"; do
            [ ! -f "volumes/$id/hang" ] || exec sleep 600
            remove "volumes/$id"
        done
        ;;
    "create "*) shift; create_container created "$@" ;;
    "start --attach") start_attached "$3" ;;
    "run --detach")
        shift 2
        create_container running "$@"
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
