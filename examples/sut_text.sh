#!/bin/sh
# A system under test that speaks plain text: the prompt is on stdin, the answer goes to stdout,
# and the exit code is 0. It stands for any command-line agent that is started with a prompt.
#
# selftest infers the status: an answer that ends in a question is AWAITING_RESPONSE, any other
# is COMPLETE. After a reply the program is started again with the conversation so far:
#
#     User: …
#
#     Assistant: …
#
#     User: …
set -eu

prompt=$(cat)

case $prompt in
*User:*) ;; # A conversation: the question was answered.
*something*)
    echo "Which file do you mean?"
    exit 0
    ;;
esac

if [ -f README.md ]; then
    printf 'The README begins with: %s\n' "$(sed -n '/[^[:space:]]/{p;q;}' README.md)"
else
    echo "There is no README.md in this project."
fi
printf 'It has %s entries at the top.\n' "$(find . -maxdepth 1 ! -name '.*' | wc -l | tr -d ' ')"
