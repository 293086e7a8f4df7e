# SPDX-License-Identifier: Apache-2.0
#
# Virtual threads in gdb, in a live process and in a core file:
#
#   (gdb) source .../share/bobbin/gdb/bobbin-gdb.py
#   (gdb) bobbin vthreads         all virtual threads: number, name, state, what each waits for
#   (gdb) bobbin bt 7             the backtrace of number 7
#   (gdb) bobbin bt all           of all that have begun
#
# It needs the symbol table of the program (one that was not stripped), no debug information. Where
# things are, the program itself says: bobbin::internal::DebuggerView.

import time

import gdb
from gdb.unwinder import Unwinder

VERSION = 2
FIELDS = """version first_pool pool_next pool_chunks pool_carved chunk_bytes chunk_head_bytes
    task_bytes tasks_per_chunk task_state task_context task_dispatcher task_wait task_stack task_id
    task_parent task_name reason_kind reason_object reason_since kind_name kind_object
    kind_holder_word dispatcher_stack_pool stack_pool_stack_bytes task_ending size_class_shift
    size_class_bits size_min""".split()

PHASES = ["idle", "fresh", "running", "waiting", "waiting, shielded", "waiting",
          "waiting for the kernel", "ready", "ready", "ready", "done"]
IDLE, FRESH, RUNNING, DONE = 0, 1, 2, 10
WAITING = (3, 4, 5, 6)

# WaitObject.
NONE, ADDRESS, DESCRIPTOR, TASK = range(4)
HOLDER_ADDRESS = (1 << 56) - 64

# What jump_fcontext stores at a context, and where; the stack goes on above it.
SAVED = {"r12": 0x08, "r13": 0x10, "r14": 0x18, "r15": 0x20, "rbx": 0x28, "rbp": 0x30, "rip": 0x38}
SAVED_BYTES = 0x40

def read(address, count):
    return bytes(gdb.selected_inferior().read_memory(address, count))

def number(address, count=8, signed=False):
    return int.from_bytes(read(address, count), "little", signed=signed)

def text(address, most=256):
    if address == 0:
        return ""
    found = b""
    while len(found) < most:
        byte = read(address + len(found), 1)
        if byte == b"\0":
            break
        found += byte
    return found.decode("utf-8", "replace")

def is_live():
    connection = gdb.selected_inferior().connection
    return connection is not None and connection.type != "core"

class View:
    """Where things are in the program."""

    def __init__(self):
        try:
            address = int(gdb.parse_and_eval(
                "(unsigned long)&'bobbin::internal::DebuggerView::view'"))
        except gdb.error as error:
            raise gdb.GdbError("no bobbin in this program, or no symbols: %s" % error)
        for index, field in enumerate(FIELDS):
            setattr(self, field, number(address + 8 * index))
        if self.version != VERSION:
            raise gdb.GdbError("the program's bobbin has layout %d, this script knows %d"
                               % (self.version, VERSION))

class VirtualThread:
    """One block of a pool that is in use."""

    def __init__(self, view, address, block):
        def field(offset, count=8):
            return int.from_bytes(block[offset:offset + count], "little")

        self.view = view
        self.address = address
        self.phase = field(view.task_state, 1)
        self.context = field(view.task_context)
        self.dispatcher = field(view.task_dispatcher)
        self.wait = field(view.task_wait)
        self.stack = field(view.task_stack)
        ending = field(view.task_ending, 4)
        self.size_class = (ending & view.size_class_bits) >> view.size_class_shift
        self.id = field(view.task_id)
        parent = field(view.task_parent, 4)
        if parent != 0:
            high = self.id >> 32
            if parent >= self.id & 0xffffffff:
                high -= 1
            parent |= high << 32
        self.parent = parent
        self.name_address = field(view.task_name)

    @property
    def name(self):
        return text(self.name_address)

    def label(self):
        return '#%d "%s"' % (self.id, self.name) if self.name_address else "#%d" % self.id

    def has_begun(self):
        return self.phase not in (IDLE, FRESH, DONE)

    def is_on_stack(self, pointer):
        # A migrating one that is ready belongs to no carrier.
        if not self.has_begun() or self.dispatcher == 0:
            return False
        pool = number(self.dispatcher + self.view.dispatcher_stack_pool)
        if self.size_class != 0:
            size = self.view.size_min << (self.size_class - 1)
        else:
            size = number(pool + self.view.stack_pool_stack_bytes)
        return self.stack <= pointer < self.stack + size

    def describe_wait(self, by_address):
        view = self.view
        kind = number(self.wait + view.reason_kind)
        what = number(self.wait + view.reason_object)
        says = text(number(kind + view.kind_name))
        object_kind = number(kind + view.kind_object, 1)
        if object_kind == ADDRESS:
            says += " 0x%x" % what
        elif object_kind == DESCRIPTOR:
            says += " on descriptor %d" % what
        elif object_kind == TASK and what in by_address:
            says += " of " + by_address[what].label()
        holder_word = number(kind + view.kind_holder_word, 4, signed=True)
        if holder_word >= 0:
            holder = number(what + holder_word) & HOLDER_ADDRESS
            if holder in by_address:
                says += " held by " + by_address[holder].label()
        since = number(self.wait + view.reason_since)
        if since != 0 and is_live():
            says += ", for %.3f s" % max(0, (time.monotonic_ns() - since) / 1e9)
        return says

def all_vthreads():
    """Every virtual thread that is spawned and has not ended, by number."""
    view = View()
    found = []
    pool = view.first_pool
    while pool != 0:
        carved = number(pool + view.pool_carved)
        chunk = number(pool + view.pool_chunks)
        while carved > 0:
            count = min(carved, view.tasks_per_chunk)
            first = chunk + view.chunk_head_bytes
            blocks = read(first, count * view.task_bytes)
            for index in range(count):
                at = index * view.task_bytes
                found.append(VirtualThread(view, first + at, blocks[at:at + view.task_bytes]))
            carved -= count
            chunk += view.chunk_bytes
        pool = number(pool + view.pool_next)
    found = [thread for thread in found if thread.phase not in (IDLE, DONE)]
    found.sort(key=lambda thread: thread.id)
    return found

def running_threads(vthreads):
    """The gdb threads that stand on a virtual thread's stack, by the address of its block."""
    running = {}
    before = gdb.selected_thread()
    try:
        for os_thread in gdb.selected_inferior().threads():
            os_thread.switch()
            pointer = int(gdb.newest_frame().read_register("rsp")) & (1 << 64) - 1
            for vthread in vthreads:
                if vthread.is_on_stack(pointer):
                    running[vthread.address] = os_thread
    finally:
        if before is not None:
            before.switch()
    return running

class ParkedUnwinder(Unwinder):
    """Has the newest frame of the selected thread seem to be called from a parked stack."""

    def __init__(self):
        super().__init__("bobbin parked virtual thread")
        self.context = None
        self.newest = None

    def aim(self, context):
        frame = gdb.newest_frame()
        self.newest = (int(frame.read_register("rsp")), int(frame.read_register("rip")))
        self.context = context
        gdb.invalidate_cached_frames()

    def rest(self):
        self.context = None
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.context is None:
            return None
        here = (int(pending.read_register("rsp")), int(pending.read_register("rip")))
        if here != self.newest:
            return None

        class FrameId:
            def __init__(self, sp, pc):
                self.sp = gdb.Value(sp)
                self.pc = gdb.Value(pc)

        # Below all frames of the parked stack, for a caller lies above.
        info = pending.create_unwind_info(FrameId(self.context, here[1]))
        word = gdb.lookup_type("unsigned long")
        for register, offset in SAVED.items():
            info.add_saved_register(register, gdb.Value(number(self.context + offset)).cast(word))
        info.add_saved_register("rsp", gdb.Value(self.context + SAVED_BYTES).cast(word))
        return info

unwinder = ParkedUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)

def print_backtrace(vthread, running):
    print("virtual thread %s:" % vthread.label())
    if vthread.phase == FRESH:
        print("  it has not begun")
        return
    os_thread = running.get(vthread.address)
    if os_thread is not None:
        before = gdb.selected_thread()
        os_thread.switch()
        print(gdb.execute("bt", to_string=True), end="")
        before.switch()
        return
    unwinder.aim(vthread.context)
    try:
        lines = gdb.execute("bt", to_string=True).splitlines()
    finally:
        unwinder.rest()
    # Number 0 is where gdb's own thread stands.
    parked = False
    for line in lines:
        parked = parked or line.startswith("#1 ")
        if parked:
            print(line)

class BobbinCommand(gdb.Command):
    """Virtual threads: `bobbin vthreads`, `bobbin bt ID`, `bobbin bt all`."""

    def __init__(self):
        super().__init__("bobbin", gdb.COMMAND_STACK, prefix=True)

class VthreadsCommand(gdb.Command):
    """List all virtual threads: number, name, parent, state, what it waits for."""

    def __init__(self):
        super().__init__("bobbin vthreads", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        vthreads = all_vthreads()
        running = running_threads(vthreads)
        by_address = {vthread.address: vthread for vthread in vthreads}
        for vthread in vthreads:
            line = vthread.label()
            if vthread.parent != 0:
                line += ", started by #%d" % vthread.parent
            if vthread.address in running:
                line += ", running on thread %d" % running[vthread.address].num
            elif vthread.phase == RUNNING:
                line += ", ready"
            else:
                line += ", " + PHASES[vthread.phase]
            if vthread.phase in WAITING:
                try:
                    line += ": " + vthread.describe_wait(by_address)
                except gdb.MemoryError:
                    line += ": (about to wait)"
            print(line)
        print("%d virtual threads" % len(vthreads))

class BacktraceCommand(gdb.Command):
    """Print the backtrace of one virtual thread, by its number, or of all."""

    def __init__(self):
        super().__init__("bobbin bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        wanted = argument.strip()
        if wanted != "all" and not wanted.isdigit():
            raise gdb.GdbError("bobbin bt ID, or bobbin bt all")
        vthreads = all_vthreads()
        running = running_threads(vthreads)
        chosen = [vthread for vthread in vthreads
                  if wanted == "all" or vthread.id == int(wanted)]
        if wanted != "all" and not chosen:
            raise gdb.GdbError("there is no virtual thread with number " + wanted)
        for vthread in chosen:
            print_backtrace(vthread, running)

BobbinCommand()
VthreadsCommand()
BacktraceCommand()
