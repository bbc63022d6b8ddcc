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
quiet=0 until=0 look=1
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
    # Only at first, as later somebody else may have loaded it, and not yet given it a tag;
    # and again while one may still come late, or could not be removed.
    [ -z "$containers" ] || look=1
    if [ "$look" -eq 1 ] || [ "$until" -gt 0 ]; then
        look=0
        for image in $images; do
            tagged=$("$engine" image inspect --format '{{len .RepoTags}}' "$image")
            [ "$tagged" = 0 ] || continue
            if "$engine" image rm "$image"; then until=0; else look=1; fi
        done
    fi
    rm -rf "$work"
    quiet=$((quiet + 1))
    [ -z "$containers$volumes" ] || quiet=0
    [ "$quiet" -ge 3 ] && [ "$(date +%s)" -ge "$until" ] && exit 0
    sleep "$pause"
done
