/* SPDX-License-Identifier: Apache-2.0 */
/* Rondo for applications: runtime and compiler. Authors of backends include plugin.h instead. */
#ifndef RONDO_RONDO_H
#define RONDO_RONDO_H

#include <rondo/array.h>
#include <rondo/cache.h>
#include <rondo/compiler.h>
#include <rondo/es.h>
#include <rondo/file.h>
#include <rondo/gate.h>
#include <rondo/ir.h>
#include <rondo/profile.h>
#include <rondo/runtime.h>
#include <rondo/tree.h>

#endif
