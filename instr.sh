#!/bin/bash
# usage: instr.sh binary seconds
taskset -c 0 valgrind --tool=callgrind --callgrind-out-file=${3:-/dev/null} $1 run phone -p pixel6 --policy linux-7.2 --seconds $2 --format csv 2>&1 >/dev/null | grep -o "Collected : .*"
