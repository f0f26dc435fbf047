
4
in0Placeholder*
dtype0*
shape
:
0
in1Placeholder*
dtype0*
shape:
0
in2Placeholder*
dtype0*
shape:
0
in3Placeholder*
dtype0*
shape:

AddAddin0in1*
T0

SubSubin0in1*
T0

MulMulin0in1*
T0
'
FloorDivFloorDivin0in1*
T0
-
TruncateDivTruncateDivin0in1*
T0
'
FloorModFloorModin0in1*
T0
-
TruncateModTruncateModin0in1*
T0
%
MaximumMaximumin0in1*
T0
%
MinimumMinimumin0in1*
T0

AbsAbsin0*
T0

NegNegin0*
T0

SignSignin0*
T0
+

BitwiseAnd
BitwiseAndin2in3*
T0
)
	BitwiseOr	BitwiseOrin2in3*
T0
+

BitwiseXor
BitwiseXorin2in3*
T0

InvertInvertin2*
T0

out0IdentityAdd*
T0

out1IdentitySub*
T0

out2IdentityMul*
T0
#
out3IdentityFloorDiv*
T0
&
out4IdentityTruncateDiv*
T0
#
out5IdentityFloorMod*
T0
&
out6IdentityTruncateMod*
T0
"
out7IdentityMaximum*
T0
"
out8IdentityMinimum*
T0

out9IdentityAbs*
T0

out10IdentityNeg*
T0
 
out11IdentitySign*
T0
&
out12Identity
BitwiseAnd*
T0
%
out13Identity	BitwiseOr*
T0
&
out14Identity
BitwiseXor*
T0
"
out15IdentityInvert*
T0"ª