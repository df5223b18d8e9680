// SPDX-License-Identifier: Apache-2.0
/* An interpreter inside another program: runs the Python program that its first argument names,
 * with the other arguments as its own. Built once against the shared libpython and once with it
 * linked in. */
#include <Python.h>

int main(int argc, char **argv)
{
	PyConfig config;
	PyStatus status;

	PyConfig_InitPythonConfig(&config);
	status = PyConfig_SetBytesArgv(&config, argc, argv);
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	if (PyStatus_Exception(status))
		Py_ExitStatusException(status);
	return Py_RunMain();
}
