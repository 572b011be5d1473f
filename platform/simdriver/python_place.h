#ifndef STRATA_PLATFORM_SIMDRIVER_PYTHON_PLACE_H_
#define STRATA_PLATFORM_SIMDRIVER_PYTHON_PLACE_H_

#include <string>

namespace strata::simdriver {

// The Python of the process, if there is one: its C functions are looked up at
// the first call.
//
// Threads: any thread.

// True if the process runs Python 3.9 or newer.
bool HasPython();

// True if the calling thread holds Python's lock (the GIL).
bool HoldsPythonLock();

// The innermost line of Python that the calling thread runs, as "train.py:12"
// with the path of the file. Empty if there is none. The calling thread holds
// Python's lock, and no lock of the driver: the call may run code of Python.
std::string PythonPlace();

// Makes the main thread call `function` soon, between two instructions of
// Python, with Python's lock held. False if Python's queue is full.
bool CallInPython(int (*function)(void*));

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_PYTHON_PLACE_H_
