"""IR for arrays that all states share: frames contain their addresses.

The code of a kernel reads such an array at fixed offsets from its start. An array that is not contiguous is copied for
the call. If the states of a batch have different arrays, each state is a separate call, which is as slow as calls with
single states.
"""

from delassus.compiler.backends.llvm.shorthand import expand_ir

SHARE = expand_ir("""
define internal void @share_x$X(ptr %frame, ptr %kernel, ptr %args) #0 {
entry:
  %count <- i64 %kernel[11]
  %n = load i64, ptr %kernel, align 8
  %table <- ptr %kernel[4]
  %any = icmp ne i64 %count, 0
  br i1 %any, label %operand, label %exit
operand:
  %k = phi i64 [ 0, %entry ], [ %k1, %next ]
  %row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %k
  %length <- i64 %row[4]
  %is.shared = icmp ne i64 %length, 0
  br i1 %is.shared, label %put, label %next
put:
  %slot <- i64 %row[1]
  %place = getelementptr $T, ptr %frame, i64 %slot
  %from = getelementptr ptr, ptr %args, i64 %k
  %address = load ptr, ptr %from, align 8
  store ptr %address, ptr %place, align $S
  br label %next
next:
  count %k below %n: %operand, then %exit
exit:
  ret void
}
""")
"""`share`: stores the addresses of shared operands in a frame."""

CHECK_AXIS = expand_ir("""\
  %a = sub i64 %left, 1
  %step <- i64 %cores[%a]
  %length <- i64 %shape[%a]
  %expected1 = mul i64 %expected, %length
  %as.expected = icmp eq i64 %step, %expected
  %trivial = icmp eq i64 %length, 1
  %same = or i1 %as.expected, %trivial""")
"""`same`: whether core axis `left` - 1 of an array has its stride in C order."""

WITH_SHARED = expand_ir("""
declare void @llvm.trap()

define internal i1 @is_row(ptr %cores, ptr %shape, i64 %axes) #0 {
entry:
  br label %check
check:
  %left = phi i64 [ %axes, %entry ], [ %a, %axis ]
  %expected = phi i64 [ $S, %entry ], [ %expected1, %axis ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %yes, label %axis
axis:
$AXIS
  br i1 %same, label %check, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @with_shared(ptr %kernel, ptr %args, ptr %strides, i64 %n) #0 {
entry:
  %m = load i64, ptr %kernel, align 8
  %table <- ptr %kernel[4]
  %given = alloca ptr, i64 %m, align 8
  br label %look
look:
  %j = phi i64 [ 0, %entry ], [ %j1, %look ]
  %apart = phi i1 [ false, %entry ], [ %apart1, %look ]
  %look.row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %j
  %look.length <- i64 %look.row[4]
  %look.shared = icmp ne i64 %look.length, 0
  %look.stride <- i64 %strides[%j]
  %differs = icmp ne i64 %look.stride, 0
  %own = and i1 %look.shared, %differs
  %apart1 = or i1 %apart, %own
  count %j below %m: %look, then %looked
looked:
  %group = select i1 %apart1, i64 1, i64 %n
  br label %call
call:
  %i = phi i64 [ 0, %looked ], [ %i1, %freed ]
  br label %operand
operand:
  %k = phi i64 [ 0, %call ], [ %k1, %give ]
  %core = phi i64 [ %m, %call ], [ %core1, %give ]
  %row = getelementptr { i64, i64, i64, ptr, i64 }, ptr %table, i64 %k
  %axes <- i64 %row[2]
  %shape <- ptr %row[3]
  %length <- i64 %row[4]
  %core1 = add i64 %core, %axes
  %from <- ptr %args[%k]
  %stride <- i64 %strides[%k]
  %bytes = mul i64 %i, %stride
  %base = getelementptr i8, ptr %from, i64 %bytes
  %is.shared = icmp ne i64 %length, 0
  br i1 %is.shared, label %check, label %give
check:
  %cores = getelementptr i64, ptr %strides, i64 %core
  %row.like = call i1 @is_row(ptr %cores, ptr %shape, i64 %axes)
  br i1 %row.like, label %give, label %copy
copy:
  %size = mul i64 %length, $S
  %buffer = call ptr @malloc(i64 %size)
  %missing = icmp eq ptr %buffer, null
  br i1 %missing, label %stop, label %copied
stop:
  call void @llvm.trap()
  unreachable
copied:
  call void @elements(ptr %buffer, i64 1, ptr %base, i64 0, ptr %cores, ptr %shape, i64 %axes, i64 %length, i64 1,
                      i1 true)
  br label %give
give:
  %address = phi ptr [ %base, %operand ], [ %base, %check ], [ %buffer, %copied ]
  %to = getelementptr ptr, ptr %given, i64 %k
  store ptr %address, ptr %to, align 8
  count %k below %m: %operand, then %ready
ready:
  %alone = icmp eq i64 %group, 1
  br i1 %alone, label %one, label %many
one:
  %always = call i1 @run(ptr %kernel, i64 0, ptr %given, ptr %strides, i64 %group)
  br label %free
many:
  %done = call i1 @run(ptr %kernel, i64 $MANY, ptr %given, ptr %strides, i64 %group)
  br i1 %done, label %free, label %one
free:
  %f = phi i64 [ 0, %one ], [ 0, %many ], [ %f1, %next ]
  %f.from <- ptr %args[%f]
  %f.stride <- i64 %strides[%f]
  %f.bytes = mul i64 %i, %f.stride
  %f.base = getelementptr i8, ptr %f.from, i64 %f.bytes
  %f.at = getelementptr ptr, ptr %given, i64 %f
  %f.given = load ptr, ptr %f.at, align 8
  %as.given = icmp eq ptr %f.given, %f.base
  br i1 %as.given, label %next, label %release
release:
  call void @free(ptr %f.given)
  br label %next
next:
  count %f below %m: %free, then %freed
freed:
  %i1 = add i64 %i, %group
  %again = icmp slt i64 %i1, %n
  br i1 %again, label %call, label %exit
exit:
  ret void
}
""").replace("$AXIS", CHECK_AXIS)
"""`with_shared`: runs states with shared arrays; it copies arrays and splits batches if necessary."""
