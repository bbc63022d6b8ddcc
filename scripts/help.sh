# shellcheck shell=bash
# Sourced first: with --help, prints the comment at the top of the script that was called.

for argument in "$@"; do
  if [[ $argument == --help || $argument == -h ]]; then
    sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p;}' "$0"
    exit 0
  fi
done
