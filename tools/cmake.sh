#!/bin/sh
# cmake, as Cargo calls it to build libjpeg-turbo (.cargo/config.toml). Its target `install` would also compile a second library, the
# programs and the tests, which nearly doubles the time; here only the library that is linked is built and installed.
cmake=$(dirname "$0")/../.tools/bin/cmake
build=$2
project() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

if [ "$1 $3 $4" != '--build --target install' ] || [ "$(project CMAKE_PROJECT_NAME)" != libjpeg-turbo ]; then
  exec "$cmake" "$@"
fi
shift 4
"$cmake" --build "$build" --target turbojpeg-static "$@" || exit
prefix=$(project CMAKE_INSTALL_PREFIX)
mkdir -p "$prefix/lib" "$prefix/include" &&
  cp "$build/libturbojpeg.a" "$prefix/lib/" &&
  cp "$(project CMAKE_HOME_DIRECTORY)/src/turbojpeg.h" "$prefix/include/"
