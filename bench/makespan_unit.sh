# One unit of the makespan bench: it takes a lock on every device that it was given, sleeps, and says when.
#
#     BENCH_RUN=FOLDER bash makespan_unit.sh NAME [SLOT WIDTH]
#
# FOLDER holds seconds/NAME (how long to sleep), locks/ (a file for each device) and times (a line for each unit). The
# devices are those in CUDA_VISIBLE_DEVICES, or those of CTest's resource groups, or number SLOT of the gangs of WIDTH.
# A lock that somebody holds is an overlap: two units on one device. Only bash, flock and sleep: cheap to start.
start=$EPOCHREALTIME
if [[ -n $2 ]]; then
    for ((i = ($2 - 1) * $3; i < $2 * $3; i++)); do devices+=("$i"); done
elif [[ -n $CTEST_RESOURCE_GROUP_COUNT ]]; then
    for ((i = 0; i < CTEST_RESOURCE_GROUP_COUNT; i++)); do
        group=CTEST_RESOURCE_GROUP_${i}_GPUS # id:3,slots:1
        id=${!group#id:}
        devices+=("${id%%,*}")
    done
else
    devices=(${CUDA_VISIBLE_DEVICES//,/ })
fi
state=alone
for device in "${devices[@]}"; do
    exec {lock}>"$BENCH_RUN/locks/$device"
    flock --nonblock "$lock" || state=overlap
done
read -r seconds <"$BENCH_RUN/seconds/$1"
sleep "$seconds"
echo "$1 $start $EPOCHREALTIME $state ${devices[*]}" >>"$BENCH_RUN/times"
[[ $state == alone ]]
