# Under SMPI: the tests of what is built upon MPI. The others do not know on which MPI they are built.
hearsay_add_mpi_test(mailbox_mpi SOURCES runtime/transport/mpi/*_test.cpp LIBRARIES hearsay_core RANKS 2 3 5
                     LABELS simulator ENVIRONMENT HEARSAY_STRESS_PACKETS=400)
hearsay_add_mpi_test(collectives_mpi SOURCES runtime/collectives/mpi/*_test.cpp LIBRARIES hearsay_core RANKS 1 2 5 8
                     LABELS simulator)
hearsay_add_mpi_test(exchange_mpi SOURCES runtime/exchange/mpi/*_test.cpp reference/*.cpp LIBRARIES hearsay_core
                     RANKS 1 2 5 LABELS simulator TIMEOUT 600)
hearsay_add_test(simulated_deaths SOURCES simulator/*_test.cpp LIBRARIES hearsay_core LABELS simulator
                 ENVIRONMENT HEARSAY_PLATFORM=${PROJECT_SOURCE_DIR}/configs/platforms/ethernet-1g-32.xml)
hearsay_add_test(simulated_window SOURCES simulator/window/*_test.cpp LIBRARIES hearsay_core LABELS simulator
                 ENVIRONMENT HEARSAY_PLATFORM=${PROJECT_SOURCE_DIR}/configs/platforms/ethernet-1g-32.xml)
hearsay_add_fuzz_targets(platform FOLDER simulator/fuzz)
if(TARGET hearsay-simulator)
  hearsay_add_script_test(simulate COMMAND simulator/simulate_test.sh $<TARGET_FILE:hearsay-simulator>
                                           ${PROJECT_SOURCE_DIR} ${HEARSAY_TORCH}
                          LABELS simulator TIMEOUT 600)
  hearsay_add_script_test(platforms COMMAND simulator/platform_test.py $<TARGET_FILE:hearsay-simulator>
                                            ${PROJECT_SOURCE_DIR}
                          LABELS simulator)
endif()
