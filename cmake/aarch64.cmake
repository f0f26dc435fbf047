# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler for 64-bit ARM, and its emulator for what ctest runs. The libraries of the tests and of the tool
# are where "tools/fetch arm64" puts them.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

if(DEFINED ENV{RONDO_CACHE})
  get_filename_component(fetched $ENV{RONDO_CACHE}/arm64 ABSOLUTE BASE_DIR ${CMAKE_CURRENT_LIST_DIR}/..)
else()
  get_filename_component(fetched ${CMAKE_CURRENT_LIST_DIR}/../.cache/arm64 ABSOLUTE)
endif()
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${fetched}/usr/include)
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${fetched})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
