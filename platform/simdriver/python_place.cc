#include "strata/platform/simdriver/python_place.h"

#include <dlfcn.h>

namespace strata::simdriver {
namespace {

// Objects of Python, known by their addresses alone.
struct Object;
struct ThreadState;

// The functions of Python's C API that are needed. All or none are set.
struct PythonFunctions {
  int (*is_initialized)();
  ThreadState* (*own_state)();
  ThreadState* (*running_state)();
  int (*add_call)(int (*)(void*), void*);
  Object* (*frame)();
  int (*line)(Object*);
  Object* (*code)(Object*);
  Object* (*attribute)(Object*, const char*);
  const char* (*text)(Object*);
  Object* (*error)();
  void (*clear_error)();
  void (*release)(Object*);
};

template <class Function>
bool Find(const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return *function != nullptr;
}

// Null without Python.
const PythonFunctions* Python() {
  static PythonFunctions functions;
  static const bool found =
      Find("Py_IsInitialized", &functions.is_initialized) &&
      Find("PyGILState_GetThisThreadState", &functions.own_state) &&
      (Find("PyThreadState_GetUnchecked", &functions.running_state) ||
       Find("_PyThreadState_UncheckedGet", &functions.running_state)) &&
      Find("Py_AddPendingCall", &functions.add_call) &&
      Find("PyEval_GetFrame", &functions.frame) &&
      Find("PyFrame_GetLineNumber", &functions.line) &&
      Find("PyFrame_GetCode", &functions.code) &&
      Find("PyObject_GetAttrString", &functions.attribute) &&
      Find("PyUnicode_AsUTF8", &functions.text) &&
      Find("PyErr_Occurred", &functions.error) &&
      Find("PyErr_Clear", &functions.clear_error) &&
      Find("Py_DecRef", &functions.release);
  return found && functions.is_initialized() != 0 ? &functions : nullptr;
}

}  // namespace

bool HasPython() { return Python() != nullptr; }

bool HoldsPythonLock() {
  const PythonFunctions* const python = Python();
  if (python == nullptr) return false;
  // PyGILState_Check is always true once a subinterpreter was made.
  const ThreadState* const own = python->own_state();
  return own != nullptr && own == python->running_state();
}

std::string PythonPlace() {
  const PythonFunctions* const python = Python();
  // An error that is being raised would be lost.
  if (python == nullptr || python->error() != nullptr) return "";
  Object* const frame = python->frame();
  if (frame == nullptr) return "";
  std::string place;
  Object* const code = python->code(frame);
  Object* const file = python->attribute(code, "co_filename");
  const char* const text = file != nullptr ? python->text(file) : nullptr;
  if (text != nullptr) {
    place = text;
    place += ':';
    place += std::to_string(python->line(frame));
  } else {
    python->clear_error();
  }
  if (file != nullptr) python->release(file);
  python->release(code);
  return place;
}

bool CallInPython(int (*function)(void*)) {
  const PythonFunctions* const python = Python();
  return python != nullptr && python->add_call(function, nullptr) == 0;
}

}  // namespace strata::simdriver
