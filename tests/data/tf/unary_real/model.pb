
4
in0Placeholder*
dtype0*
shape
:

AbsAbsin0*
T0

NegNegin0*
T0

ExpExpin0*
T0
 
SigmoidSigmoidin0*
T0

TanhTanhin0*
T0

ReluReluin0*
T0

Relu6Relu6in0*
T0

EluEluin0*
T0

SeluSeluin0*
T0
"
SoftplusSoftplusin0*
T0
"
SoftsignSoftsignin0*
T0

SquareSquarein0*
T0

SinSinin0*
T0

CosCosin0*
T0

AtanAtanin0*
T0

SinhSinhin0*
T0

CoshCoshin0*
T0

AsinhAsinhin0*
T0

ErfErfin0*
T0

ErfcErfcin0*
T0

CeilCeilin0*
T0

FloorFloorin0*
T0

RintRintin0*
T0

RoundRoundin0*
T0

SignSignin0*
T0
4
	LeakyRelu	LeakyReluin0*
T0*
alpha%ÍÌL>
6
LeakyRelu_1	LeakyReluin0*
T0*
alpha%333?

out0IdentityAbs*
T0

out1IdentityNeg*
T0

out2IdentityExp*
T0
"
out3IdentitySigmoid*
T0

out4IdentityTanh*
T0

out5IdentityRelu*
T0
 
out6IdentityRelu6*
T0

out7IdentityElu*
T0

out8IdentitySelu*
T0
#
out9IdentitySoftplus*
T0
$
out10IdentitySoftsign*
T0
"
out11IdentitySquare*
T0

out12IdentitySin*
T0

out13IdentityCos*
T0
 
out14IdentityAtan*
T0
 
out15IdentitySinh*
T0
 
out16IdentityCosh*
T0
!
out17IdentityAsinh*
T0

out18IdentityErf*
T0
 
out19IdentityErfc*
T0
 
out20IdentityCeil*
T0
!
out21IdentityFloor*
T0
 
out22IdentityRint*
T0
!
out23IdentityRound*
T0
 
out24IdentitySign*
T0
%
out25Identity	LeakyRelu*
T0
'
out26IdentityLeakyRelu_1*
T0"ª