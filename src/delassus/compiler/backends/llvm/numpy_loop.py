"""IR of the loop that NumPy calls, around the compiled body of any kernel.

NumPy passes a loop the addresses of the arrays, the number of states, the strides, and a pointer, here to the kernel's
descriptor (see `runtime`). A single state runs the scalar body. More states run the vector body, two groups of lanes at
a time. A pointer in the descriptor refers to the code. If it is null, the loop calls Python to compile the code. The
floating-point environment is saved, set to round to nearest with subnormals flushed and no traps, and restored at the
end, so that the caller's modes do not change results and padding lanes raise no warnings.
"""

from delassus.compiler.backends.llvm import transpose
from delassus.compiler.backends.llvm.float_environment import float_environment
from delassus.compiler.backends.llvm.placeholders import fill_in
from delassus.compiler.backends.llvm.shared import WITH_SHARED
from delassus.compiler.backends.llvm.shorthand import expand_ir
from delassus.compiler.backends.llvm.states import DECLARATIONS
from delassus.compiler.backends.target import Target

LOOP = "delassus_loop"


def emit_loop(target: Target) -> str:
    """The text of the module with the function that NumPy calls, `LOOP`."""
    environment = float_environment(target)
    run = _RUN.replace("$KEEP", environment.keep).replace("$SAVE", environment.save)
    run = run.replace("$RESTORE", environment.restore)
    shared = fill_in(transpose.ELEMENTS + WITH_SHARED, 1, target.precision)
    loop = (shared + _LOOP).replace("$MANY", str(int(target.lanes > 1)))
    return DECLARATIONS + environment.declarations + run + loop + target.attributes


# Runs the code of a kernel with index %width. If it is missing, Python compiles it: before the floating-point modes
# change, with Python's lock, and not if an exception is pending. Compilation changes floating-point flags, which NumPy
# checks in the end, so they are restored. If there is still no code, an exception is set, which NumPy raises. The
# result is false if the code had no memory.
_RUN = expand_ir("""
define internal i1 @run(ptr %kernel, i64 %width, ptr %args, ptr %strides, i64 %n) #0 {
entry:
  %place = add i64 %width, 5
  %code.at = getelementptr ptr, ptr %kernel, i64 %place
  %found = load atomic ptr, ptr %code.at acquire, align 8
  %missing = icmp eq ptr %found, null
  br i1 %missing, label %ask, label %ready
ask:
$KEEP  %maker.place = add i64 %width, 7
  %maker <- ptr %kernel[%maker.place]
  %python <- ptr %kernel[9]
  %lock = load ptr, ptr %python, align 8
  %occurred <- ptr %python[1]
  %call <- ptr %python[2]
  %drop <- ptr %python[3]
  %unlock <- ptr %python[4]
  %state = call i32 %lock()
  %error = call ptr %occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %make, label %asked
make:
  %result = call ptr %call(ptr %maker)
  call void %drop(ptr %result)
  br label %asked
asked:
  call void %unlock(i32 %state)
$RESTORE  %made = load atomic ptr, ptr %code.at acquire, align 8
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %exit, label %ready
ready:
  %code = phi ptr [ %found, %entry ], [ %made, %asked ]
  %states = load ptr, ptr %code, align 8
  %done = call i1 @within(ptr %states, ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n)
  ret i1 %done
exit:
  ret i1 true
}
define internal i1 @within(ptr %states, ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n) #0 {
$SAVE  %done = call i1 %states(ptr %kernel, ptr %code, ptr %args, ptr %strides, i64 %n)
$RESTORE  ret i1 %done
}
""")

_LOOP = expand_ir(f"""
define void @{LOOP}(ptr %args, ptr %dimensions, ptr %strides, ptr %kernel) #0 {{
entry:
  %n = load i64, ptr %dimensions, align 8
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %start, label %exit
start:
  %shared <- i64 %kernel[11]
  %any.shared = icmp ne i64 %shared, 0
  br i1 %any.shared, label %with.shared, label %without
with.shared:
  call void @with_shared(ptr %kernel, ptr %args, ptr %strides, i64 %n)
  br label %exit
without:
  %alone = icmp eq i64 %n, 1
  br i1 %alone, label %one, label %many
many:
  %done = call i1 @run(ptr %kernel, i64 $MANY, ptr %args, ptr %strides, i64 %n)
  br i1 %done, label %exit, label %one
one:
  %always = call i1 @run(ptr %kernel, i64 0, ptr %args, ptr %strides, i64 %n)
  br label %exit
exit:
  ret void
}}
""")
