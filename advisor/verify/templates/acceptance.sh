# What follows is the same in every kit; what varies stands above.
usage() {
  cat <<'TEXT'
./acceptance.sh                       all tests, one after the other
./acceptance.sh TEST...               some of them: machine ports nccl_one_node nccl_two_nodes nics data checkpoint ranks stability resume
./acceptance.sh record_node_fault SECONDS [platform|hand]   the time until training went on after a node was switched off
HOSTS=node1,node2 ...                 the nodes, for tests between them; this machine is the first, ssh works without a password,
                                      and this folder lies under the same path on each
NCCL_TESTS=/path  DATA_DIR=/path  CHECKPOINT_DIR=/path  RESULTS=/path  GID_INDEX=3  MPI_OPTIONS="..."
TEXT
}

say() { printf '\n== %s\n' "$*"; }

# keep NAME COMMAND...: its output goes to the screen and to a file of the results.
keep() {
  local name=$1
  shift
  "$@" 2>&1 | tee "$RESULTS/$name"
  local status=${PIPESTATUS[0]}
  if [ "$status" -ne 0 ]; then echo "   (ended with status $status)"; fi
  return 0
}

need() {
  if command -v "$1" >/dev/null 2>&1 || [ -x "$1" ]; then return 0; fi
  echo "   left out: $1 is not installed"
  return 1
}

# compare NAME VALUE UNIT NEEDED ACT: more is better. Verdicts for the hurry; `advisor verify` has the causes and the margins.
compare() {
  awk -v name="$1" -v value="$2" -v unit="$3" -v needed="$4" -v act="$5" 'BEGIN {
    if (value == "") { printf "-> %s: no number found\n", name; exit }
    if (needed == "") { printf "-> %s: %s %s\n", name, value, unit; exit }
    verdict = value + 0 >= needed + 0 ? "PASS" : value + 0 >= act + 0 ? "MARGINAL" : "FAIL"
    printf "-> %s: %s %s, needed %s (act below %s): %s\n", name, value, unit, needed, act, verdict
  }'
}

# Bus bandwidth of the largest size, the better column; algbw is the one before it and is not compared.
busbw() {
  awk '$1 ~ /^[0-9]+$/ && NF >= 12 { a = $(NF - 5); b = $(NF - 1); best = a + 0 > b + 0 ? a : b } END { print best }' "$1"
}

fio_bandwidth() {
  python3 -c 'import json, sys
text = open(sys.argv[1], encoding="utf-8", errors="replace").read()
data = json.loads(text[text.index("{"):])
print(round(sum(job[sys.argv[2]]["bw_bytes"] for job in data["jobs"]) / 1e9, 3))' "$1" "$2" 2>/dev/null
}

first_host() { printf '%s' "${HOSTS%%,*}"; }
second_host() { local rest=${HOSTS#*,}; printf '%s' "${rest%%,*}"; }

two_hosts() {
  case $HOSTS in
    *,*) return 0 ;;
    *) echo '   left out: set HOSTS=node1,node2'; return 1 ;;
  esac
}

machine() {
  say 'machine: cards, faults, topology, CPU governor'
  need nvidia-smi || return 0
  keep smi.csv nvidia-smi --query-gpu=index,name,driver_version,memory.total,memory.used,temperature.gpu,utilization.gpu,power.limit,ecc.errors.uncorrected.volatile.total,mig.mode.current --format=csv
  keep topo.txt nvidia-smi topo -m
  nvidia-smi nvlink -s 2>/dev/null | head -20
  sort /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor 2>/dev/null | uniq -c
  echo "-> cards: $(nvidia-smi -L | wc -l), needed $GPUS_PER_NODE"
}

ports() {
  say 'ports: state, rate, addresses'
  need ibstat && keep ibstat.txt ibstat
  need show_gids && keep show_gids.txt show_gids
  need ibv_devinfo && keep ibv_devinfo.txt ibv_devinfo
  return 0
}

nccl_one_node() {
  say "nccl-tests in one node, $GPUS_PER_NODE GPU(s)"
  need "$NCCL_TESTS/all_reduce_perf" || return 0
  keep nccl_one_node.txt "$NCCL_TESTS/all_reduce_perf" -b 8M -e 8G -f 2 -g "$GPUS_PER_NODE" -n 20
  compare 'bus bandwidth in a node' "$(busbw "$RESULTS/nccl_one_node.txt")" GB/s "$NEED_SCALE_UP" "$ACT_SCALE_UP"
}

nccl_two_nodes() {
  say 'nccl-tests on two nodes: as NCCL chooses, then with the ring, which cannot exceed the wire'
  two_hosts || return 0
  need mpirun || return 0
  need "$NCCL_TESTS/all_reduce_perf" || return 0
  local hosts algorithm
  local -a options=() chosen=()
  hosts="$(first_host):$GPUS_PER_NODE,$(second_host):$GPUS_PER_NODE"
  read -r -a options <<<"${MPI_OPTIONS:-}"
  for algorithm in default ring; do
    chosen=()
    if [ "$algorithm" = ring ]; then chosen=(-x NCCL_ALGO=RING); fi
    keep "nccl_two_nodes_$algorithm.txt" mpirun "${options[@]}" -np $((2 * GPUS_PER_NODE)) -H "$hosts" \
      -x NCCL_DEBUG=INFO -x NCCL_DEBUG_SUBSYS=INIT,NET "${chosen[@]}" \
      "$NCCL_TESTS/all_reduce_perf" -b 8M -e 8G -f 2 -g 1 -n 20
    compare "bus bandwidth between nodes ($algorithm)" "$(busbw "$RESULTS/nccl_two_nodes_$algorithm.txt")" GB/s \
      "$NEED_SCALE_OUT" "$ACT_SCALE_OUT"
  done
  grep -hE 'NET/(IB|Socket|OFI) ' "$RESULTS/nccl_two_nodes_default.txt" | head -3
}

nics() {
  say 'perftest: each port of this node against the same port of the second node'
  two_hosts || return 0
  need ib_write_bw || return 0
  local path device peer value options
  peer=$(second_host)
  options="--report_gbits -D 10 -F -q 4${GID_INDEX:+ -x $GID_INDEX}"
  for path in /sys/class/infiniband/*; do
    [ -e "$path" ] || continue
    device=${path##*/}
    # shellcheck disable=SC2029  # the options are ours and are meant to be filled in on this side
    ssh "$peer" "timeout 60 ib_write_bw -d $device $options" >/dev/null 2>&1 &
    sleep 3
    # shellcheck disable=SC2086  # several options
    keep "perftest_$device.txt" timeout 60 ib_write_bw -d "$device" $options "$peer"
    wait
    value=$(awk '$1 ~ /^[0-9]+$/ && NF >= 5 { print $4 }' "$RESULTS/perftest_$device.txt" | tail -1)
    compare "port $device" "$value" Gb/s "$NEED_NIC" "$ACT_NIC"
  done
}

data() {
  say "reading data under $DATA_DIR: random reads, past the page cache (start it on all nodes at once)"
  need fio || return 0
  mkdir -p "$DATA_DIR/.acceptance"
  keep fio_data.json fio --name=data --directory="$DATA_DIR/.acceptance" --rw=randread --bs="$DATA_BLOCK" --size=4G \
    --numjobs="$READERS" --iodepth=4 --ioengine=libaio --direct=1 --time_based --runtime=60 --group_reporting --output-format=json
  compare 'reading data, one node' "$(fio_bandwidth "$RESULTS/fio_data.json" read)" GB/s "$NEED_READ" "$ACT_READ"
  rm -rf "$DATA_DIR/.acceptance"
}

checkpoint() {
  say "writing checkpoints under $CHECKPOINT_DIR: one writer a GPU, flushed at the end (start it on all nodes at once)"
  need fio || return 0
  mkdir -p "$CHECKPOINT_DIR/.acceptance"
  keep fio_checkpoint.json fio --name=checkpoint --directory="$CHECKPOINT_DIR/.acceptance" --rw=write --bs=16M \
    --size="$CHECKPOINT_SHARE" --numjobs="$GPUS_PER_NODE" --iodepth=8 --ioengine=libaio --direct=1 --end_fsync=1 \
    --group_reporting --output-format=json
  compare 'writing checkpoints, one node' "$(fio_bandwidth "$RESULTS/fio_checkpoint.json" write)" GB/s "$NEED_WRITE" "$ACT_WRITE"
  rm -rf "$CHECKPOINT_DIR/.acceptance"
}

# launch COMMAND...: torchrun here, or over HOSTS with the first as the meeting point.
launch() {
  local result=$1
  shift
  need torchrun || return 0
  if [ -z "$HOSTS" ] || [ "$NODES" -eq 1 ]; then
    keep ".logs/${result%.json}.log" torchrun --standalone --nproc-per-node "$GPUS_PER_NODE" "$@"
    return 0
  fi
  local -a hosts
  IFS=, read -r -a hosts <<<"$HOSTS"
  local number here line
  here=$(pwd)
  line=$(printf ' %q' "$@")
  for ((number = 1; number < ${#hosts[@]} && number < NODES; number++)); do
    # shellcheck disable=SC2029  # filled in on this side, each word quoted by printf %q
    ssh "${hosts[number]}" "cd $(printf '%q' "$here") && torchrun --nnodes $NODES --node-rank $number --nproc-per-node \
$GPUS_PER_NODE --rdzv-backend c10d --rdzv-endpoint $(printf '%q' "${hosts[0]}"):29499$line" >/dev/null 2>&1 &
  done
  keep ".logs/${result%.json}.log" torchrun --nnodes "$NODES" --node-rank 0 --nproc-per-node "$GPUS_PER_NODE" \
    --rdzv-backend c10d --rdzv-endpoint "${hosts[0]}:29499" "$@"
  wait
}

ranks() {
  say "rank check: one all-reduce over $GPUS GPU(s)"
  launch rank_check.json rank_check.py "$GPUS" "$RESULTS/rank_check.json"
}

stability() {
  say "stability: $STABILITY_SECONDS s of full load on this node, with temperature and Xid watch"
  need torchrun || return 0
  keep .logs/stability.log torchrun --standalone --nproc-per-node "$GPUS_PER_NODE" stability.py "$STABILITY_SECONDS" "$RESULTS/stability.json"
}

resume() {
  say "kill-and-resume: a rank is killed in the middle; training must go on from its checkpoint under $CHECKPOINT_DIR"
  need torchrun || return 0
  local folder=$CHECKPOINT_DIR/.acceptance_resume
  rm -rf "$folder"
  keep .logs/resume.log torchrun --standalone --max-restarts 1 --nproc-per-node "$GPUS_PER_NODE" resume.py "$folder" "$RESULTS/resume.json"
  rm -rf "$folder"
}

record_node_fault() {
  case ${1:-} in
    '' | *[!0-9]*) echo 'record_node_fault needs the number of seconds.'; exit 2 ;;
  esac
  printf '{"advisor_kit": "node_fault", "seconds": %s, "by": "%s"}\n' "$1" "$([ "${2:-hand}" = platform ] && echo platform || echo hand)" \
    >"$RESULTS/node_fault.json"
  cat "$RESULTS/node_fault.json"
}

main() {
  cd "$(dirname "$0")" || exit 2
  mkdir -p "$RESULTS/.logs" || exit 2
  RESULTS=$(cd "$RESULTS" && pwd)
  case ${1:-} in
    -h | --help) usage; exit 0 ;;
    record_node_fault) shift; record_node_fault "$@"; exit 0 ;;
  esac
  local -a chosen=("$@")
  if [ "$#" -eq 0 ]; then
    chosen=(machine ports nccl_one_node nccl_two_nodes nics data checkpoint ranks stability resume)
  fi
  local one
  for one in "${chosen[@]}"; do
    case $one in
      machine | ports | nccl_one_node | nccl_two_nodes | nics | data | checkpoint | ranks | stability | resume) "$one" ;;
      *) echo "There is no test called $one."; usage; exit 2 ;;
    esac
  done
  say "Results lie in $RESULTS. Read them with: advisor verify scenario.json $(printf '%q' "$RESULTS")"
}

main "$@"
