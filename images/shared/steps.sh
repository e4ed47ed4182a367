# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# What the recipes' stages do alike, for `. /tmp/steps.sh`: a stage has it from
# the context, beside ca.crt, and no published image has either.
#
# ca.crt are the certificates that a build trusts besides the usual ones; empty
# where there are none. NPM_REGISTRY is another registry than npm's own, or empty.

export DEBIAN_FRONTEND=noninteractive
apt_ca=
if [ -s /tmp/ca.crt ]; then
    apt_ca=Acquire::https::CAInfo=/tmp/ca.crt
    export NODE_EXTRA_CA_CERTS=/tmp/ca.crt
fi
if [ -n "${NPM_REGISTRY:-}" ]; then
    export npm_config_registry="$NPM_REGISTRY"
fi

# again COMMAND...: a mirror may be behind a proxy, or fail now and then. npm's
# own retries would wait for minutes where nothing can help: this is enough.
again()
{
    for try in 1 2 3 4; do
        if "$@"; then return; fi
        if [ "$try" = 4 ]; then exit 1; fi
        sleep $((try * 5))
    done
}

update_and_install()
{
    apt-get ${apt_ca:+-o "$apt_ca"} update -qq &&
        apt-get ${apt_ca:+-o "$apt_ca"} install -qq -y --no-install-recommends "$@" >/dev/null
}

# install_packages PACKAGE...: of Debian.
install_packages()
{
    again update_and_install "$@"
}

# choose AMD64 ARM64: the word for this architecture.
choose()
{
    case $(dpkg --print-architecture) in
    amd64) echo "$1" ;;
    arm64) echo "$2" ;;
    *)
        echo "there is no such program for this architecture" >&2
        exit 1
        ;;
    esac
}

# fetch_package SPEC INTEGRITY: the package of npm as ./package.tgz. npm compares
# it with the registry's checksum; here it is compared with what is pinned.
fetch_package()
{
    again npm pack --loglevel=error --fetch-retries=0 "$1"
    mv ./*.tgz package.tgz
    got=$(node -p '"sha512-" + require("crypto").createHash("sha512")
        .update(require("fs").readFileSync("package.tgz")).digest("base64")')
    if [ "$got" != "$2" ]; then
        echo "$1: versions.json pins $2, and the registry gave $got" >&2
        exit 1
    fi
}

# fetch_node: node alone, as /node/usr/local/bin/node.
fetch_node()
{
    platform=$(choose x64 arm64)
    fetch_package "node-linux-$platform@$NODE_VERSION" "$NODE_INTEGRITY"
    tar -xzf package.tgz package/bin/node
    install -D -m 755 package/bin/node /node/usr/local/bin/node
    same_times /node
    /node/usr/local/bin/node --version | grep -F "$NODE_VERSION"
}

# install_locked PACKAGE [OPTION...]: what ./package-lock.json names, which has the
# hash of every package; npm compares each with it. PACKAGE's own is in
# versions.json. No install script runs: what these build or fetch is for other
# platforms. Types and maps are for those who develop with the packages.
install_locked()
{
    node -e '
        const { VERSION, INTEGRITY } = process.env;
        const packages = require("./package-lock.json").packages;
        const own = packages["node_modules/" + process.argv[1]];
        const bare = Object.keys(packages).filter((name) => name && !packages[name].integrity);
        const fail = (why) => { console.error("package-lock.json: " + why); process.exit(1); };
        if (own.version !== VERSION) fail("it is of " + own.version + ", and versions.json pins " + VERSION);
        if (own.integrity !== INTEGRITY) fail("it has " + own.integrity + ", and versions.json pins " + INTEGRITY);
        if (bare.length) fail("no hash for " + bare.join(", "));
    ' "$1"
    shift
    again npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=0 "$@"
    rm -f package-lock.json node_modules/.package-lock.json
    find node_modules \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
    find node_modules -type d \
        \( -name 'darwin-*' -o -name 'win32-*' -o -name "linux-$(choose arm64 x64)" \) \
        -prune -exec rm -rf {} +
}

# same_times FOLDER: so that the layer is the same whenever it is made.
same_times()
{
    find "$1" -exec touch -h -d @0 {} +
}
