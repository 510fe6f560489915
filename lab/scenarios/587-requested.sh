#!/bin/sh
# The request of apply is kept as data: words of a reason are not interfaces, the command that verify prints can be pasted,
# and check uses the request.
# hosts: router16
# kernels: 6.12
# timeout: 240
# needs: mqnic
. /h/lib.sh
. /h/state.sh
export RINGWISE_STATE_DIR=/tmp/rw587

links mq0 mq1
state mq0 mq1 >/tmp/before
status "apply with a reason of two words and a table by weights" 0 \
	ringwise apply --yes --goal rpc --reason "move mq1" --set 'mq0.rss.table="weight 3 1"' mq0
cat /tmp/out
ringwise history 1 -o json >/tmp/history.json
same "the journal has the words of the command line" \
	"$(head -n 1 $RINGWISE_STATE_DIR/tx-0001.jsonl | grep -c '"argv":\["[^"]*","apply","--yes","--goal","rpc","--reason","move mq1","--set"')" 1
same "and the intent" "$(head -n 1 $RINGWISE_STATE_DIR/tx-0001.jsonl | grep -c '"requested":{"flags":.*"intent":{"goal":"rpc"')" 1
status "check" 3 ringwise check
cat /tmp/out
says "it judges by the goal that was applied" "goal rpc"
status "verify finds all as applied" 0 ringwise verify
ethtool -X mq0 default
status "verify finds the manual change" 3 ringwise verify
cat /tmp/out
back=$(sed -n 's/^Put back: //p' /tmp/out)
echo "it prints: $back"
same "it can be pasted" "$back" "ringwise apply mq0 --goal rpc --set 'mq0.rss.table=\"weight 3 1\"' --take-over"
status "what it prints, with --yes" 0 sh -c "$back --yes"
status "all is as applied again" 0 ringwise verify
status "rollback" 0 ringwise rollback --yes 0
state mq0 mq1 >/tmp/after
unchanged "all is as before" /tmp/before /tmp/after
