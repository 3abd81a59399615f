# `cmake --install`: programs to bin and libexec/fsbl, data (scenarios, reports, schemas) to share/fsbl.
if(TARGET fsbl)
  install(TARGETS fsbl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(program fsbl-agent fsbl-worker)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/fsbl)
  endif()
endforeach()
