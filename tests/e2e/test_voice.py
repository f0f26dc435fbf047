# SPDX-License-Identifier: Apache-2.0
"""The voice example finds one interval a spoken file, none in silence, and the same ones as ONNX Runtime does."""
import re
import subprocess
import unittest
import wave

import numpy as np
from support import BUILD, SOUNDS, model
from test_models import session

SPOKEN = "Front_Center Front_Left Front_Right Rear_Center Rear_Left Rear_Right Side_Left Side_Right".split()
FRAME = 512


def samples_of(name):
    path = SOUNDS / f"{name}.wav"
    if not path.is_file():
        raise unittest.SkipTest(f"{path.name} was not fetched")
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getsampwidth()) == (1, 48000, 2)
        data = np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768
    steps = np.arange(97) - 48
    taps = np.sinc(0.3 * steps) * (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(97) / 96))
    return np.convolve(data, taps / taps.sum(), "same")[::3].astype(np.float32)


def probabilities(path, samples):
    peer = session(path)
    samples = np.concatenate([samples, np.zeros(-len(samples) % FRAME, np.float32)])
    state, context, result = np.zeros((2, 1, 128), np.float32), np.zeros(64, np.float32), []
    for start in range(0, len(samples), FRAME):
        window = np.concatenate([context, samples[start:start + FRAME]])[None]
        probability, state = peer.run(["output", "stateN"], {"input": window, "state": state, "sr": np.array(16000)})
        context = window[0, -64:]
        result.append(probability[0, 0])
    return result


def intervals(values):
    """Starts at 0.5, ends below 0.35; pauses under half a second are bridged."""
    raw, speaking = [], False
    for frame, value in enumerate(values):
        if not speaking and value >= 0.5:
            speaking, start = True, frame
        elif speaking and value < 0.35:
            speaking = False
            raw.append([start, frame])
    if speaking:
        raw.append([start, len(values)])
    merged = []
    for start, end in raw:
        if merged and (start - merged[-1][1]) * FRAME / 16000 < 0.5:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    return [(s * FRAME / 16000, e * FRAME / 16000) for s, e in merged]


class Voice(unittest.TestCase):
    def found(self, name, device):
        done = subprocess.run([str(BUILD / "bin/examples/voice"), str(model(name)), str(SOUNDS), device], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        spoken, noise = done.stdout.split("noise:")
        pattern = re.compile(r"speech +\d+: +([0-9.]+) s to +([0-9.]+) s")
        return [[(float(a), float(b)) for a, b in pattern.findall(part)] for part in (spoken, noise)]

    def test_intervals(self):
        silence = np.zeros(16000, np.float32)
        parts, spans, at = [silence], [], 1.0
        for name in SPOKEN:
            data = samples_of(name)
            parts += [data, silence]
            spans.append((at, at + len(data) / 16000))
            at = spans[-1][1] + 1.0
        samples = np.concatenate(parts)
        for name in ("silero_vad.onnx", "silero_vad_op18_ifless.onnx"):
            want = intervals(probabilities(model(name), samples))
            want_noise = intervals(probabilities(model(name), samples_of("Noise")))
            for device in ("cpu", "sim"):
                with self.subTest(model=name, device=device):
                    got, noise = self.found(name, device)
                    self.assertEqual([(round(a, 2), round(b, 2)) for a, b in want], got)
                    self.assertEqual([(round(a, 2), round(b, 2)) for a, b in want_noise], noise)
                    self.assertEqual(len(got), len(spans))
                    for (start, end), (first, last) in zip(got, spans):
                        # A frame is 32 ms, and is over when it is judged.
                        self.assertGreaterEqual(start, first - 0.032)
                        self.assertLessEqual(end, last + 0.064)


if __name__ == "__main__":
    unittest.main()
