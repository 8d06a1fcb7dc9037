// Stands for the Python bindings: a module that is linked after the provider and does not contain it.

extern "C" const char* PyModuleName() { return "onnxruntime_pybind11_state"; }
