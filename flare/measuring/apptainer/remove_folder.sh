#!/bin/sh
# Removes the folder of a measurement when the measurement is killed.
#
#     remove_folder.sh FOLDER PAUSE_S
#
# It waits for the end of the process that has started it, of which it knows by its
# standard input; a line "done" there says that there is nothing to remove. Somebody
# may still write to the folder then, and a container may have closed folders in it: so
# this looks until three times nothing was there, with pauses between.
read -r word && [ "$word" = "done" ] && exit 0
quiet=0
for _ in $(seq 100); do
    if [ -e "$1" ]; then
        chmod -R u+rwX "$1"
        rm -rf "$1"
        quiet=0
    fi
    quiet=$((quiet + 1))
    [ "$quiet" -ge 3 ] && exit 0
    sleep "$2"
done
