#!/usr/bin/env bash
# Waves of four hosts with a stand-in of the program: nothing on this machine is read or changed.
set -eux

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The probe of the latency needs a port that is open.
python - "$folder/port" <<'SERVER' &
import socket
import sys

with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
    with open(sys.argv[1], "w") as f:
        f.write(str(server.getsockname()[1]))
    server.settimeout(600)
    while True:
        server.accept()[0].close()
SERVER
server=$!
trap 'kill "$server"; rm -rf "$folder"' EXIT
while [ ! -s "$folder/port" ]; do sleep 0.1; done

hosts() { # a=SCENARIO b=SCENARIO …
    rm -rf "$folder/hosts"
    mkdir "$folder/hosts"
    python ../../../fake/scenarios.py "$folder/hosts" "$@"
}

# The hosts have no interpreter for the playbook without Python.
inventory() { # INTERPRETER
    for h in a b c d; do
        echo "$h ansible_connection=local ansible_host=127.0.0.1 ansible_python_interpreter=$1" \
            "ringwise_executable=$folder/hosts/$h/ringwise ringwise_program_src=$folder/hosts/$h/ringwise"
    done >"$folder/inventory"
}

play() { # PLAYBOOK [ARGUMENT]…: the output is in $folder/out, and the state of each host in $folder/hosts/HOST/state
    ansible-playbook -i "$folder/inventory" -e ringwise_hosts=all -e ringwise_become=false -e '{"ringwise_waves": [1, 1, "100%"]}' \
        -e ringwise_gate_latency_port="$(cat "$folder/port")" -e ringwise_gate_latency_floor_us=1000000 \
        "$@" >"$folder/out" 2>&1
}

recap() { # HOST CHANGED
    grep -E "^$1 +: .* changed=$2 +unreachable=0 +failed=0" "$folder/out" || { cat "$folder/out"; exit 1; }
}

inventory "$(command -v python)"

# Without hosts nothing is tuned: not the whole inventory.
for p in waves no_python no_python_raw; do
    if ansible-playbook -i "$folder/inventory" "ringwise.host.$p" >"$folder/out" 2>&1; then exit 1; fi
    grep -F -- '-e ringwise_hosts=GROUP' "$folder/out"
done

# Check mode shows the plan of every host, and applies nothing.
hosts a=good b=good c=good d=good
play ringwise.host.waves --check --diff
for h in a b c d; do recap "$h" 1; done
grep -Fx -- '+eth1/rx-1/irq_cpus = 1' "$folder/out"
[ ! -e "$folder/hosts/a/state" ]

# The first run tunes, confirms and persists on every host, the second one changes nothing.
play ringwise.host.waves -e ringwise_persist=boot
for h in a b c d; do recap "$h" 3; grep -x persisted "$folder/hosts/$h/state"; done
play ringwise.host.waves -e ringwise_persist=boot
for h in a b c d; do recap "$h" 0; done

# The configuration file is checked by the program before it is copied.
cat >"$folder/play.yml" <<'PLAY'
- hosts: a
  gather_facts: false
  roles:
    - ringwise.host.ringwise
PLAY
config=(-e "ringwise_config_path=$folder/etc/ringwise.toml" -e '{"ringwise_config": "version = 1\n"}')
play "$folder/play.yml" "${config[@]}"
recap a 2
grep -x 'version = 1' "$folder/etc/ringwise.toml"
grep -F '["config", "check", ' "$folder/hosts/a/log"
grep -F -- "--config=$folder/etc/ringwise.toml" "$folder/hosts/a/log"
play "$folder/play.yml" "${config[@]}"
recap a 0

# A wave in which the first host is tuned already: the other one is still compared with hosts of the next wave.
hosts a=good b=good c=good d=good
printf kept >"$folder/hosts/a/state"
play ringwise.host.waves -e '{"ringwise_waves": [2, "100%"]}' -e ringwise_gate_require_comparison=true -v
recap a 0
recap b 2
for h in c d; do
    [ "$(grep -n '"watch"' "$folder/hosts/$h/log" | head -n 1 | cut -d : -f 1)" -lt \
        "$(grep -n '"apply"' "$folder/hosts/$h/log" | head -n 1 | cut -d : -f 1)" ]
done
grep -F '"compared_with": 2' "$folder/out"

# Results that Ansible could take for a failed or a skipped task: status 3, and a request that is not planned.
cat >"$folder/play.yml" <<'PLAY'
- hosts: a
  gather_facts: false
  module_defaults:
    group/ringwise.host.ringwise:
      executable: "{{ ringwise_executable }}"
  tasks:
    - ringwise.host.ringwise_plan:
      register: planned
    - ringwise.host.ringwise_apply:
        confirm: 60s
      register: applied
    - ringwise.host.ringwise_confirm:
        transaction: 1
      check_mode: true
      register: checked
    - ansible.builtin.assert:
        that:
          - planned is success and planned is not skipped and planned.rc == 3
          - planned.not_planned == ["eth1 rings"]
          - applied is changed and applied is not skipped and applied.not_planned == ["eth1 rings"]
          - checked is changed and checked.rc == 3
PLAY
hosts a=incomplete
play "$folder/play.yml"
grep -x tried "$folder/hosts/a/state"

# A step that the kernel refuses stops its wave with the account of the host. Later hosts are not touched.
hosts a=good b=refused c=good d=good
if play ringwise.host.waves; then exit 1; fi
grep -x kept "$folder/hosts/a/state"
grep -F 'EINVAL (Invalid argument)' "$folder/out"
grep -F '"verdict": "put_back"' "$folder/out"
grep -F 'apply' "$folder/hosts/b/log"
[ ! -e "$folder/hosts/c/state" ] && [ ! -e "$folder/hosts/d/state" ]

# A host that cannot be reached stops the play too, which any_errors_fatal alone does not do.
hosts a=good b=good c=good d=good
sed -i '/^b /s/ansible_connection=local/ansible_connection=ssh ansible_port=1/' "$folder/inventory"
for playbook in waves no_python_raw; do
    if play ringwise.host.$playbook -e ringwise_gate_others=0; then exit 1; fi
    grep -x kept "$folder/hosts/a/state"
    grep -F 'did not pass: b"' "$folder/out"
    [ ! -e "$folder/hosts/c/state" ] && [ ! -e "$folder/hosts/d/state" ]
done
inventory "$(command -v python)"

# A host of the last wave that fails the gate stays on trial, and so do the others of its wave: nothing confirms them.
for scenario in elsewhere drops; do
    hosts a=good b=good c=good d="$scenario"
    if play ringwise.host.waves; then exit 1; fi
    grep -x kept "$folder/hosts/b/state"
    grep -x tried "$folder/hosts/c/state"
    grep -x tried "$folder/hosts/d/state"
    grep -F 'the host does not pass' "$folder/out"
done

# Without Python on the hosts: the controller copies the program, or the hosts have it.
inventory /nonexistent
for playbook in no_python no_python_raw; do
    hosts a=good b=refused c=good d=good
    play ringwise.host.$playbook -l a --check
    recap a 1
    [ ! -e "$folder/hosts/a/state" ]
    play ringwise.host.$playbook -l a -e ringwise_goal=rpc \
        -e '{"ringwise_set": {"eth0.rss.table": "equal 4", "eth0.coalesce.rx-usecs": 5}, "ringwise_interfaces": ["eth0", "eth1"]}'
    grep -F '"--goal=rpc", "--set=eth0.rss.table=equal 4", "--set=eth0.coalesce.rx-usecs=5", "--", "eth0", "eth1"]' \
        "$folder/hosts/a/log"
    recap a 2
    grep -x kept "$folder/hosts/a/state"
    play ringwise.host.$playbook -l a
    recap a 0
    if play ringwise.host.$playbook; then exit 1; fi
    grep -F 'EINVAL (Invalid argument)' "$folder/out"
    [ ! -e "$folder/hosts/c/state" ]
done
