#!/bin/sh
# Removes what a measurement has made in the engine when the measurement is killed.
#
#     remove_leftovers.sh ENGINE label=LABEL "TAG ..." "IMAGE ..." FOLDER PAUSE_S LOADING_S \
#         ANSWER_S MOST_S
#
# It waits for the end of the process that has started it, of which it knows by its
# standard input; a line "done" there says that there is nothing to remove. What that
# process still had asked the engine to do may be done only then: so this looks until
# three times nothing was there, with pauses between, and for longer if an image was being
# loaded: who starts again meanwhile waits for a minute. An engine that does not answer is
# asked again, but not for ever: the exit status is 1 if something may remain.
engine=$1 label=$2 tags=$3 images=$4 work=$5 pause=$6 loading=$7 answer=$8 most=$9
read -r word && [ "$word" = "done" ] && exit 0
end=$(($(date +%s) + most)) quiet=0 until=0 look=1

# Gives the engine a command, and ends it after a while, with status 137.
ask() { # COMMAND ...
    left=$((end - $(date +%s)))
    [ "$left" -lt "$answer" ] || left=$answer
    [ "$left" -gt 0 ] && timeout -s KILL "$left" "$engine" "$@"
}

# Looks again where that was so: nobody knows what is there.
note() {
    [ $? -ne 137 ] || quiet=0
}

# What an engine has begun to load, it may finish only in a while.
[ ! -e "$work/loading" ] || until=$(($(date +%s) + loading))
while [ "$(date +%s)" -lt "$end" ]; do
    quiet=$((quiet + 1))
    containers=$(ask ps --all --quiet --filter "$label") || note
    # shellcheck disable=SC2086  # these are several words
    [ -z "$containers" ] || ask rm --force --volumes $containers
    volumes=$(ask volume ls --quiet --filter "$label") || note
    # shellcheck disable=SC2086
    [ -z "$volumes" ] || ask volume rm --force $volumes
    for tag in $tags; do ask image rm --force "$tag" || note; done
    # Only at first, as later somebody else may have loaded it, and not yet given it a tag;
    # and again while one may still come late, or could not be removed.
    [ -z "$containers" ] || look=1
    if [ "$look" -eq 1 ] || [ "$until" -gt 0 ]; then
        look=0
        for image in $images; do
            tagged=$(ask image inspect --format '{{len .RepoTags}}' "$image") || note
            [ "$tagged" = 0 ] || continue
            if ask image rm "$image"; then until=0; else note && look=1; fi
        done
    fi
    rm -rf "$work"
    [ -z "$containers$volumes" ] || quiet=0
    [ "$quiet" -ge 3 ] && [ "$(date +%s)" -ge "$until" ] && exit 0
    sleep "$pause"
done
exit 1
