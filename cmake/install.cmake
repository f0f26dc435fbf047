# SPDX-License-Identifier: Apache-2.0
# What is installed, and how another project finds it: a CMake package (rondo::rondo, rondo::rondo_static) and
# pkg-config's rondo.pc.
include(CMakePackageConfigHelpers)

set_target_properties(rondo_shared PROPERTIES EXPORT_NAME rondo)
install(TARGETS rondo_shared rondo_static EXPORT rondo-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/rondo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT rondo-targets NAMESPACE rondo:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
configure_package_config_file(cmake/rondo-config.cmake.in ${CMAKE_BINARY_DIR}/cmake/rondo-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
# Before 1.0 a new minor version may break.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/rondo-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
configure_file(cmake/rondo.pc.in ${CMAKE_BINARY_DIR}/cmake/rondo.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cmake/rondo-config.cmake ${CMAKE_BINARY_DIR}/cmake/rondo-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
install(FILES ${CMAKE_BINARY_DIR}/cmake/rondo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
