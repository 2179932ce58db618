#!/bin/sh
# Install the workbench: code-server (VS Code in the browser), Node 24 for it, playwright-core.
# Into node_modules beside this file and nowhere else; a second run has nothing to do.
set -eu
cd "$(dirname "$0")"
stamp=node_modules/.ok
[ "$stamp" -nt package-lock.json ] && [ "$stamp" -nt install.sh ] && exit 0
echo 'Installing the workbench in the browser: about a minute, this once.'

npm ci --loglevel=error

# code-server runs on Node 24 alone. For Linux npm has one; elsewhere it must be yours.
node24=$(cd node_modules/node-linux-*/bin 2>/dev/null && pwd || true)
if [ -z "$node24" ] && [ "$(node -p 'process.versions.node.split(".")[0]')" = 24 ]; then
    node24=$(dirname "$(command -v node)")
fi
if [ -z "$node24" ]; then
    echo "The workbench needs Node 24, which npm has for Linux only: please install it and put it" \
        "first on the PATH. (With VS Code's \`code\` on the PATH \`make run\` does without.)" >&2
    exit 1
fi
ln -sfn "$node24" node_modules/.node24
PATH=$node24:$PATH
npm_config_nodedir=$(dirname "$node24") # native builds find the headers here: no download
export PATH npm_config_nodedir
quietly='--loglevel=error --no-audit --no-fund --no-update-notifier'

# The workbench's own packages. Not `npm ci`: its list lacks an entry.
cd node_modules/code-server/lib/vscode
# shellcheck disable=SC2086  # these are several words
npm install --omit=dev --ignore-scripts $quietly
# shellcheck disable=SC2086
(cd extensions && npm install --omit=dev --ignore-scripts $quietly)

# Log files and terminals are compiled; all else is there without them.
spdlog=node_modules/@vscode/spdlog/build/Release/spdlog.node
# shellcheck disable=SC2086
npm rebuild --ignore-scripts=false $quietly @vscode/spdlog @vscode/native-watchdog node-pty \
    >build.log 2>&1 || true
if [ ! -f "$spdlog" ]; then
    echo "No compiler here (g++, make, python3): the workbench gets no terminal and writes no logs."
fi

# 280 MB that nobody here asks for.
rm -rf node_modules/@github node_modules/@microsoft/mxc-sdk extensions/copilot
cd ../../../..
touch "$stamp"
