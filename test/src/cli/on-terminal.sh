# Runs its arguments and prints how they ended, and whether the terminal is as it was, with an exit
# code of its own that is 0: at any other, socat discards what it has not read yet.
trap : INT
before=$(stty -g)
"$@"
echo "exited with status $?"
if [ "$(stty -g)" = "$before" ]; then echo "the terminal is as before"; else echo "the terminal is another"; fi
