#!/bin/sh
# The agent of this example: it knows on which port a service listens.
set -eu

case $(cat) in
*web*) echo "The web server listens on port 80." ;;
*mail*) echo "Mail is taken on port 25." ;;
*names*) echo "Names are answered on port 53." ;;
*) echo "Which service do you mean?" ;;
esac
