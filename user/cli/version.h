/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CLI_VERSION_H
#define SP_CLI_VERSION_H
#define SP_VERSION "0.1.0"
#endif
