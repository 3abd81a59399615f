# Writes generated/fsbl_version.h at every build: version, commit and whether the tree was dirty.
add_custom_target(fsbl_version ALL
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
          -DOUT=${CMAKE_BINARY_DIR}/generated/fsbl_version.h -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/fsbl_version.h
  COMMENT "")
