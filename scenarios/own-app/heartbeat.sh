#!/bin/bash
# An app of one's own in shell: sends a heartbeat to one node and logs message events on standard output.
#
#     PERIOD=SECONDS heartbeat.sh HOST PORT

stop=
trap 'stop=yes' TERM # how the timeline stops an app: finish the message, then end

for ((number = 1; ; number++)); do
    id=$VIGNETTE_INSTANCE-$number
    topic=beat/$VIGNETTE_NODE
    ts=$(date +%s%N) # nanoseconds since 1970
    if printf '{"id":"%s","topic":"%s"}' "$id" "$topic" >"/dev/udp/$1/$2"; then
        # The agent fills in the instance. Without ts it would fill in the time at which it reads the line.
        printf '{"ts":%s,"status":"sent","id":"%s","topic":"%s"}\n' "$ts" "$id" "$topic"
    fi
    sleep "$PERIOD" &
    wait $!
    [ "$stop" ] && exit
done
