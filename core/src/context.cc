// SPDX-License-Identifier: Apache-2.0

#include "core/src/context.h"

#if defined(__x86_64__) && defined(__linux__)

// The arguments are already where jump_fcontext wants them. It returns to label 1 on the stack
// arrived at, with the leaver's context in rax and the address to store it at in rdx. Who walks a
// parked stack asks for what holds one byte before label 1, as for any return address: the nop is
// there to be asked.
__asm__(
    ".text\n"
    ".globl bobbin_switch_context\n"
    ".hidden bobbin_switch_context\n"
    ".type bobbin_switch_context, @function\n"
    ".balign 16\n"
    "bobbin_switch_context:\n"
    "  .cfi_startproc\n"
    "  leaq 1f(%rip), %rax\n"
    "  pushq %rax\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  jmp jump_fcontext@PLT\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  nop\n"
    "1:\n"
    "  movq %rax, (%rdx)\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size bobbin_switch_context, .-bobbin_switch_context\n");

#endif
