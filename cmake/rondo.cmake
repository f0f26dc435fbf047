# SPDX-License-Identifier: Apache-2.0
# How a room becomes objects, tests and a part of the library.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON) # POSIX, and the builtins that gcc and clang share
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

option(RONDO_TESTS "Build the tests (needs cmocka)" ON)
option(RONDO_TOOLS "Build the tool and the measurements (needs cJSON)" ON)
option(RONDO_WERROR "Warnings are errors" ON)
option(RONDO_FUZZ "Build libFuzzer programs (needs clang)" OFF)
set(RONDO_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

file(STRINGS cmake/warnings.txt RONDO_WARNINGS) # tools/ reads the same list
# Nobody puts a function of another library in the place of one of Rondo's: calls inside a file may be inlined.
add_compile_options(${RONDO_WARNINGS} -fno-math-errno -fno-semantic-interposition)
if(RONDO_WERROR)
  add_compile_options(-Werror)
endif()
# A failure names its file as the repository does, wherever it was built.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
add_compile_definitions(_GNU_SOURCE)
if(RONDO_SANITIZE)
  add_compile_options(-fsanitize=${RONDO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RONDO_SANITIZE})
endif()
if(RONDO_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "RONDO_FUZZ needs clang: configure with CC=clang")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_package(Threads REQUIRED)
if(RONDO_TESTS)
  enable_testing()
  set(RONDO_TEST_SECONDS 300) # of a test at most
  if(RONDO_SANITIZE OR CMAKE_CROSSCOMPILING) # there, and on a busy machine, all takes many times as long
    set(RONDO_TEST_SECONDS 600)
  endif()
  find_library(CMOCKA_LIBRARY cmocka REQUIRED)
  # Compiled once for all test programs.
  add_library(rondo_harness OBJECT tests/harness/harness.c)
  target_include_directories(rondo_harness PRIVATE include tests)
  # A shared library that a test links may refer to what it wraps.
  set_target_properties(rondo_harness PROPERTIES C_VISIBILITY_PRESET default)
endif()

set(RONDO_OBJECTS "" CACHE INTERNAL "")

function(rondo_sources folder)
  file(GLOB all CONFIGURE_DEPENDS ${folder}/*.c)
  set(code ${all})
  list(FILTER code EXCLUDE REGEX "_(test|fuzz)\\.c$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.c$")
  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.c$")
  set(ROOM_CODE ${code} PARENT_SCOPE)
  set(ROOM_TESTS ${tests} PARENT_SCOPE)
  set(ROOM_FUZZERS ${fuzzers} PARENT_SCOPE)
endfunction()

# rondo_objects(name files...): an object library of the current folder, linked into the library and the tests.
function(rondo_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set(RONDO_OBJECTS ${RONDO_OBJECTS} ${name} CACHE INTERNAL "")
endfunction()

function(rondo_room folder)
  rondo_sources(${folder})
  if(NOT ROOM_CODE)
    return()
  endif()
  string(REPLACE "/" "_" name rondo_${folder})
  rondo_objects(${name} ${ROOM_CODE})
  set_property(GLOBAL APPEND PROPERTY RONDO_TEST_FILES ${ROOM_TESTS})
  set_property(GLOBAL APPEND PROPERTY RONDO_FUZZ_FILES ${ROOM_FUZZERS})
endfunction()

# A plugin may bring a CMakeLists.txt of its own (kernel variants).
function(rondo_plugin folder)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  else()
    rondo_room(${folder})
  endif()
endfunction()

macro(add_subdirectory_if_there folder)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${folder})
  endif()
endmacro()

# The library, one test program a *_test.c that sees every room's privates, and the fuzz targets.
function(rondo_library)
  set(objects "")
  foreach(room ${RONDO_OBJECTS})
    list(APPEND objects $<TARGET_OBJECTS:${room}>)
  endforeach()
  foreach(kind static shared)
    string(TOUPPER ${kind} upper)
    add_library(rondo_${kind} ${upper} ${objects})
    set_target_properties(rondo_${kind} PROPERTIES OUTPUT_NAME rondo LINKER_LANGUAGE C)
    target_include_directories(rondo_${kind} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(rondo_${kind} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
  endforeach()
  set_target_properties(rondo_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
  if(NOT RONDO_SANITIZE) # a sanitizer's own symbols come with the program
    target_link_options(rondo_shared PRIVATE -Wl,--no-undefined)
  endif()
  if(NOT RONDO_TESTS)
    return()
  endif()
  rondo_test(harness_test tests/harness/harness_test.c)
  get_property(tests GLOBAL PROPERTY RONDO_TEST_FILES)
  foreach(file ${tests})
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${file})
    string(REGEX REPLACE "^src/" "" name ${relative})
    string(REGEX REPLACE "/" "_" name ${name})
    string(REGEX REPLACE "\\.c$" "" name ${name})
    rondo_test(${name} ${file})
  endforeach()
  get_property(fuzzers GLOBAL PROPERTY RONDO_FUZZ_FILES)
  foreach(file ${fuzzers})
    rondo_fuzz(${file})
  endforeach()
endfunction()

# rondo_test(name files...): a cmocka program over the static library. Unoptimised, because deferred functions look at a
# body's locals after it has returned.
function(rondo_test name)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O0)
  add_executable(${name} ${ARGN} $<TARGET_OBJECTS:rondo_harness>)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests
                             ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE rondo_static ${CMOCKA_LIBRARY})
  target_link_options(${name} PRIVATE -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=free
                      -Wl,--wrap=aligned_alloc -Wl,--wrap=posix_memalign)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # In the sources, as __FILE__ is: that is where a test finds its data.
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Tests that make a plugin need the compiler of the program that loads it.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${RONDO_TEST_SECONDS} ENVIRONMENT "CC=${CMAKE_C_COMPILER}")
endfunction()

# rondo_fuzz(x_fuzz.c): build/fuzz/x replays fuzz/corpus/x and fuzz/regressions/x with any compiler and sanitizer;
# build/fuzz/x-fuzzer looks for new inputs.
function(rondo_fuzz file)
  get_filename_component(name ${file} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  set(programs fuzz_${name})
  add_executable(fuzz_${name} ${file} ${PROJECT_SOURCE_DIR}/fuzz/replay.c)
  set_target_properties(fuzz_${name} PROPERTIES OUTPUT_NAME ${name})
  if(RONDO_FUZZ)
    add_executable(fuzz_${name}_fuzzer ${file})
    set_target_properties(fuzz_${name}_fuzzer PROPERTIES OUTPUT_NAME ${name}-fuzzer)
    target_link_options(fuzz_${name}_fuzzer PRIVATE -fsanitize=fuzzer)
    list(APPEND programs fuzz_${name}_fuzzer)
  endif()
  foreach(program ${programs})
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
    target_link_libraries(${program} PRIVATE rondo_static)
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  endforeach()
  add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name}
           ${PROJECT_SOURCE_DIR}/fuzz/regressions/${name})
  set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT ${RONDO_TEST_SECONDS})
endfunction()
