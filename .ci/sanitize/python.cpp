// The usual Python with a sanitizer's runtime in it: modules that are built with the sanitizer find it here.
#include <Python.h>

int main(int argc, char** argv) { return Py_BytesMain(argc, argv); }
