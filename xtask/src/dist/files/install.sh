#!/bin/sh
# Installs Dodona @VERSION@: downloads the archive for this platform, verifies its checksum and moves the
# program into place in one step. A failed or interrupted installation leaves nothing behind.
#
# Everything is inside functions and starts on the last line, so that a partly downloaded script does
# nothing.
set -eu

version='@VERSION@'
targets='@TARGETS@'
default_base_url='@BASE_URL@'

usage() {
    cat <<HELP
Install Dodona $version.

Usage: install.sh [--to DIR] [--from URL]

  --to DIR    directory for the program [default: ~/.local/bin]
  --from URL  address of the folder with the archive and SHA256SUMS [env: DODONA_BASE_URL]
  --help      print this text
HELP
}

work=''        # temporary directory
staged=''      # the new program next to its final place
created=''     # the topmost directory created by this run
download_pid=''

clean_up() {
    [ -z "$download_pid" ] || kill "$download_pid" 2>/dev/null || true
    [ -z "$staged" ] || rm -f "$staged"
    [ -z "$work" ] || rm -rf "$work"
    # Succeeds only for directories that are still empty.
    if [ -n "$created" ]; then
        directory=$to
        while [ "$directory" != "${created%/*}" ]; do
            rmdir "$directory" 2>/dev/null || break
            directory=${directory%/*}
        done
    fi
}

interrupt() {
    echo 'error: interrupted, nothing was installed' >&2
    exit "$1"
}

fail() {
    echo "error: $1" >&2
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

parse_arguments() {
    to=''
    base_url=${DODONA_BASE_URL:-$default_base_url}
    while [ $# -gt 0 ]; do
        case $1 in
            --to | --from)
                [ $# -gt 1 ] && [ -n "$2" ] || fail "$1 needs a value" 'see install.sh --help'
                if [ "$1" = --to ]; then to=$2; else base_url=$2; fi
                shift 2
                ;;
            --help | -h)
                usage
                exit 0
                ;;
            *) fail "unknown argument \`$1\`" 'see install.sh --help' ;;
        esac
    done
    if [ -z "$to" ]; then
        [ -n "${HOME:-}" ] || fail 'HOME is not set' 'pass --to DIR'
        to=$HOME/.local/bin
    fi
    case $to in
        /*) ;;
        *) to=$PWD/$to ;;
    esac
    to=${to%/}
    base_url=${base_url%/}
    [ -n "$base_url" ] || fail 'no download address' 'pass --from URL or set DODONA_BASE_URL'
}

check_tools() {
    has curl || has wget || fail 'neither curl nor wget is installed' 'install one of them'
    has sha256sum || has shasum || has openssl ||
        fail 'no program for SHA-256 checksums is installed' 'install sha256sum, shasum or openssl'
    has tar || fail 'tar is not installed' 'install it'
    has gzip || fail 'gzip is not installed' 'install it'
}

find_target() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in
        amd64) machine=x86_64 ;;
        arm64) machine=aarch64 ;;
    esac
    case $system in
        Linux)
            case $(ldd --version 2>&1 || true) in
                *musl*) target=$machine-unknown-linux-musl ;;
                *) target=$machine-unknown-linux-gnu ;;
            esac
            ;;
        Darwin) target=$machine-apple-darwin ;;
        *) target=$machine-$system ;;
    esac
    case " $targets " in
        *" $target "*) ;;
        *) fail "this platform is not supported: $target" "build from source, or use one of: $targets" ;;
    esac
}

# download NAME: saves $base_url/NAME as $work/NAME.
download() {
    # In the background: a shell handles a signal only after its foreground command has ended.
    if has curl; then
        curl --fail --silent --show-error --location --output "$work/$1" "$base_url/$1" 2>"$work/errors" &
    else
        wget --quiet --output-document="$work/$1" "$base_url/$1" 2>"$work/errors" &
    fi
    download_pid=$!
    if wait "$download_pid"; then
        download_pid=''
        return
    fi
    download_pid=''
    fail "cannot download $base_url/$1" "check the address and the network connection$(reason)"
}

# The downloader's own message, if it printed one.
reason() {
    [ ! -s "$work/errors" ] || printf ' (%s)' "$(head -n 1 "$work/errors")"
}

sha256() {
    if has sha256sum; then
        sha256sum "$1"
    elif has shasum; then
        shasum -a 256 "$1"
    else
        openssl dgst -sha256 -r "$1"
    fi | cut -d ' ' -f 1
}

verify() {
    expected=''
    while read -r sum name; do
        [ "$name" != "$1" ] || expected=$sum
    done <"$work/SHA256SUMS"
    [ -n "$expected" ] || fail "SHA256SUMS has no line for $1" 'report this to the publisher of the files'
    actual=$(sha256 "$work/$1")
    [ "$actual" = "$expected" ] || fail "checksum mismatch: $1 has $actual, expected $expected" \
        'the file is damaged or was changed; nothing was installed'
}

create_directory() {
    directory=$to
    while [ ! -d "$directory" ]; do
        created=$directory
        directory=${directory%/*}
        [ -n "$directory" ] || break
    done
    mkdir -p "$to" || fail "cannot create $to" 'pass --to DIR'
}

install_program() {
    tar -xzf "$work/$1" -C "$work" || fail "cannot unpack $1" 'check the free space in the temporary directory'
    program=$work/dodona-$version-$target/dodona
    "$program" --version >/dev/null 2>"$work/errors" ||
        fail "the program does not run on this system$(reason)" 'build it from source'
    create_directory
    [ ! -d "$to/dodona" ] || fail "$to/dodona is a directory" 'pass --to DIR'
    staged=$to/.dodona.$$
    { cp "$program" "$staged" && chmod 755 "$staged" && mv -f "$staged" "$to/dodona"; } ||
        fail "cannot write to $to" 'pass --to DIR'
    staged=''
    created=''
}

main() {
    parse_arguments "$@"
    check_tools
    find_target
    trap clean_up EXIT
    trap 'interrupt 129' HUP
    trap 'interrupt 130' INT
    trap 'interrupt 143' TERM
    work=$(mktemp -d "${TMPDIR:-/tmp}/dodona-install.XXXXXX") || fail 'cannot create a temporary directory'
    archive=dodona-$version-$target.tar.gz
    download SHA256SUMS
    download "$archive"
    verify "$archive"
    install_program "$archive"

    echo "installed $to/dodona ($version)"
    found=$(command -v dodona || true)
    case $found in
        "$to/dodona") ;;
        '') echo "hint: add $to to PATH" ;;
        *) echo "hint: \`dodona\` runs $found; put $to before it in PATH" ;;
    esac
}

main "$@"
