#!/bin/sh
# Removes what a measurement has made in the engine when the measurement is killed.
#
#     remove_leftovers.sh ENGINE label=LABEL "TAG ..." "IMAGE ..." FOLDER PAUSE_S LOADING_S
#
# It waits for the end of the process that has started it, of which it knows by its
# standard input; a line "done" there says that there is nothing to remove. What that
# process still had asked the engine to do may be done only then: so this looks until
# three times nothing was there, with pauses between, and for longer if an image was being
# loaded: who starts again meanwhile waits for a minute.
engine=$1 label=$2 tags=$3 images=$4 work=$5 pause=$6 loading=$7
read -r word && [ "$word" = "done" ] && exit 0
quiet=0 until=0
# What an engine has begun to load, it may finish only in a while.
[ ! -e "$work/loading" ] || until=$(($(date +%s) + loading))
for _ in $(seq 100); do
    containers=$("$engine" ps --all --quiet --filter "$label")
    # shellcheck disable=SC2086  # these are several words
    [ -z "$containers" ] || "$engine" rm --force --volumes $containers
    volumes=$("$engine" volume ls --quiet --filter "$label")
    # shellcheck disable=SC2086
    [ -z "$volumes" ] || "$engine" volume rm --force $volumes
    for tag in $tags; do "$engine" image rm --force "$tag"; done
    for image in $images; do
        [ "$("$engine" image inspect --format '{{len .RepoTags}}' "$image")" = 0 ] &&
            "$engine" image rm "$image" && until=0
    done
    rm -rf "$work"
    quiet=$((quiet + 1))
    [ -z "$containers$volumes" ] || quiet=0
    [ "$quiet" -ge 3 ] && [ "$(date +%s)" -ge "$until" ] && exit 0
    sleep "$pause"
done
