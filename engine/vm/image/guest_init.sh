#!/busybox sh
# Init of a guest, and the agent that runs programs in it.
#
# It mounts the folders that the host shares, at the same paths as on the host, and then executes
# the commands from the control port. Values from the host (paths, environments, commands) arrive
# quoted in shell scripts that the host writes, so they may contain any bytes: boot.sh describes the
# file system, <n>.sh is a program. The agent knows nothing about workers.
#
# Control port, host to guest:           Guest to host:
#   run <channel> <n> <end mark> [input]   ready
#   signal <channel> <TERM|KILL>           started <channel>
#   off                                    exit <channel> code|signal <number> [oom]
#
# On a fatal error the guest prints "engine: <reason>" on the console and powers off.
#
# A channel consists of two ports, out<channel> and err<channel>. The end mark of a run follows the
# output of its program on both. Input comes on the port in<channel>, in frames that are lines:
# "open <n>", "data <bytes>" with the bytes behind it, and "end".

b=/busybox
scripts=/run/host
state=/run/agent
groups=$state/cgroup

fail() {
  echo "engine: $1" >/dev/console
  $b sleep 1
  $b reboot -f
}

kernel_file_systems() {
  $b mount -t proc -o nosuid,nodev,noexec proc /proc
  $b mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
  $b mount -t devtmpfs -o nosuid,mode=0755 dev /dev
  $b mkdir -p /dev/pts /dev/shm /run /tmp /var/tmp /root /home $scripts
  $b mkdir -m 0700 $state
  $b mkdir $groups
  $b mount -t devpts -o nosuid,noexec,gid=5,mode=620,ptmxmode=666 devpts /dev/pts
  $b mount -t tmpfs -o nosuid,nodev,mode=1777 shm /dev/shm
  $b mount -t cgroup2 -o nosuid,nodev,noexec cgroup $groups
  $b chmod 0755 /
  $b chmod 1777 /tmp /var/tmp
  $b chmod 0700 /root
  $b ln -s /proc/self/fd /dev/fd
  $b ln -s fd/0 /dev/stdin
  $b ln -s fd/1 /dev/stdout
  $b ln -s fd/2 /dev/stderr
  $b ln -s /run /var/run
}

modules() {
  while read -r module; do
    $b insmod "/modules/$module.ko" || fail "the module $module cannot be loaded"
  done </modules/order
  $b rm -rf /modules
}

# plan9 <tag> <path> <options>
plan9() {
  $b mkdir -p "$2"
  $b mount -t 9p -o "trans=virtio,version=9p2000.L,msize=131072,nosuid,nodev,$3" "$1" "$2" ||
    fail "$2 cannot be mounted"
}

# The commands of boot.sh.
read_only() { plan9 "$1" "$2" ro,cache=loose; }
writable() { plan9 "$1" "$2" access=any,cache=mmap; }
link() { $b ln -s "$2" "/$1"; }
user() {
  user=$1 name=$3
  [ "$user" = 0 ] && return
  $b mkdir -p "/home/$name"
  $b chown "$1:$2" "/home/$name"
}

network() {
  $b ifconfig lo 127.0.0.1
  $b ifconfig eth0 10.0.2.15 netmask 255.255.255.0
  $b route add default gw 10.0.2.2
}

# Sets port_<name> for each port, and channels. The kernel adds the ports one after the other; the
# control port is the last one.
ports() {
  until [ -n "$port_control" ]; do
    [ -n "$channels" ] && $b usleep 5000
    channels=
    for entry in /sys/class/virtio-ports/*; do
      [ -e "$entry/name" ] && read -r found <"$entry/name" || continue
      eval "port_$found=/dev/${entry##*/}"
      case $found in out*) channels="$channels ${found#out}" ;; esac
    done
  done
}

# Otherwise a program that uses too much memory thrashes for minutes: the kernel evicts and rereads
# its code for a long time before the out-of-memory killer ends it.
no_thrashing() {
  [ -d /sys/kernel/mm/lru_gen ] || return
  echo y >/sys/kernel/mm/lru_gen/enabled
  echo 1000 >/sys/kernel/mm/lru_gen/min_ttl_ms
}

# One memory cgroup for each channel: when memory runs out, the kernel kills all processes of one
# program and none of the others.
program_groups() {
  echo +memory >$groups/cgroup.subtree_control
  $b mkdir $groups/programs
  echo +memory >$groups/programs/cgroup.subtree_control
  folders= pipes=
  for channel in $channels; do
    folders="$folders $state/$channel $groups/programs/$channel"
    pipes="$pipes $state/$channel/out $state/$channel/err"
  done
  $b mkdir $folders
  $b mkfifo -m 0600 $pipes
  $b chown "$user" $pipes
  for channel in $channels; do
    echo 1 >"$groups/programs/$channel/memory.oom.group"
  done
}

oom_kills() {
  while read -r what count; do
    [ "$what" = oom_kill ] && echo "$count"
  done <"$groups/programs/$1/memory.events"
}

# pump <channel> <out|err> <end mark>: copies the output of a program to the host.
pump() {
  eval "to=\$port_$2$1"
  { $b cat; printf '\0%s' "$3"; } <"$state/$1/$2" >"$to"
}

# enter <channel> <n>: runs in the program's process, joins its cgroup and executes the program.
enter() {
  echo $$ >"$groups/programs/$1/cgroup.procs"
  echo $$ >"$state/$1/pid"
  echo 0 >/proc/self/oom_score_adj
  echo "started $1" >&3
  exec 3>&-
  [ "$user" = 0 ] && exec $b sh "$scripts/$2.sh"
  exec $b su -m -s /sh "$name" -c ". $scripts/$2.sh"
}

# feed <channel>: writes the input from the host into the fifos of the channel's programs, one after
# the other. What comes after the end of a program is dropped: writing fails, and reading goes on.
feed() {
  eval "from=\$port_in$1"
  while read -r what value; do
    case $what in
      open)
        until [ -p "$state/$1/in.$value" ]; do $b usleep 5000; done
        exec 5>"$state/$1/in.$value"
        ;;
      data) $b dd bs="$value" count=1 iflag=fullblock >&5 2>/dev/null ;;
      end) exec 5>&- ;;
    esac
  done <"$from"
}

# prepare_input <channel> <n>
prepare_input() {
  $b mkfifo -m 0600 "$state/$1/in.$2"
  [ -e "$state/$1/fed" ] && return
  : >"$state/$1/fed"
  (feed "$1" 3>&- &)
}

# program <channel> <n> <end mark> [input]: runs a program to its end and reports its exit.
program() {
  input=/dev/null
  [ -n "$4" ] && input=$state/$1/in.$2
  pump "$1" out "$3" &
  pump "$1" err "$3" &
  before=$(oom_kills "$1")
  $b time -o "$state/$1/how" -f %x $b setsid $b sh /init enter "$1" "$2" \
    >"$state/$1/out" 2>"$state/$1/err" <"$input"
  echo 1 >"$groups/programs/$1/cgroup.kill"
  wait
  $b rm -f "$state/$1/pid" "$state/$1/in.$2"
  read -r how <"$state/$1/how"
  case $how in
    *signal*) how="signal ${how##* }" ;; # Command terminated by signal 9
    *) how="code ${how##* }" ;; # Command exited with non-zero status 7, or the code alone.
  esac
  [ "$(oom_kills "$1")" = "$before" ] || how="$how oom"
  echo "exit $1 $how" >&3
}

# send_signal <channel> <name>
send_signal() {
  if [ "$2" = KILL ]; then
    echo 1 >"$groups/programs/$1/cgroup.kill"
  elif read -r pid <"$state/$1/pid"; then
    $b kill -s "$2" -- "-$pid"
  fi
}

off() {
  echo 1 >$groups/programs/cgroup.kill
  $b sync
  $b reboot -f
}

# Powers off when the host closes the control port.
agent() {
  echo ready >&3
  while read -r verb first second third fourth <&3; do
    case $verb in
      run)
        [ -n "$fourth" ] && prepare_input "$first" "$second"
        (program "$first" "$second" "$third" "$fourth" &)
        ;;
      signal) send_signal "$first" "$second" 2>/dev/null ;;
      off) off ;;
    esac
  done
  off
}

if [ "$1" = enter ]; then
  . $state/settings
  enter "$2" "$3"
fi

kernel_file_systems
modules
plan9 host $scripts ro,cache=none
ports
exec 3<>"$port_control"
network
. $scripts/boot.sh
$b hostname -F /etc/hostname
printf 'user=%s name=%s' "$user" "$name" >$state/settings
$b ln $b /sh
no_thrashing
program_groups
echo -1000 >/proc/self/oom_score_adj
agent &
wait # Reaps orphaned processes.
fail "the agent ended"
