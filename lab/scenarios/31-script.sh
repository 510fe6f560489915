#!/bin/sh
# The shell script of a plan and apply end in the same state, and the script's undo in the first.
# hosts: router16 small2
# kernels: 6.1 6.12
# timeout: 400
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw31

devs=$(awk '{ print $2 }' /h/nics)
links $devs
state $devs >/tmp/before
# Learn first what cannot be moved: a script refuses as a whole what apply would note and pass over.
status "apply, to learn" 0 ringwise apply --yes
status "and back" 0 ringwise rollback --yes 0
ringwise plan -o sh >/tmp/plan.sh 2>/tmp/err
same "plan -o sh" "$?" 0
status "the script applies" 0 sh /tmp/plan.sh apply
state $devs >/tmp/by-script
status "the script undoes" 0 sh /tmp/plan.sh undo
state $devs >/tmp/after
unchanged "undone, the host is as before" /tmp/before /tmp/after
status "apply" 0 ringwise apply --yes
state $devs >/tmp/by-apply
unchanged "script and apply end in the same state" /tmp/by-script /tmp/by-apply
if cmp -s /tmp/before /tmp/by-apply; then
	not_ok "there was something to do" "the plan was empty"
else
	ok "there was something to do"
fi
status "rollback" 0 ringwise rollback --yes 0
state $devs >/tmp/after
unchanged "rolled back" /tmp/before /tmp/after
