"""Drawing of a bird of a given species: pose, light, perch and clutter are random, the plumage marks are fixed."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from dmlcore.data.synthetic.birds.pose import Places, Pose
from dmlcore.data.synthetic.birds.scenery import background, clutter, perch
from dmlcore.data.synthetic.birds.species import Species
from dmlcore.typing import Floats, Pixels

FINE = 2  # supersampling factor: birds are drawn at this multiple of the size and then averaged


def draw(species: Species, random: np.random.Generator, side: int) -> Pixels:
    """Draw a bird (side, side, 3) uint8, determined by `species` and `random`; `side` changes only the resolution."""
    pixels = FINE * side
    image = background(random, pixels)
    pose = Pose(species, random)
    pose.place(random, pixels)
    perch(image, pose.feet, random)
    shade = Image.new("L", image.size, 255)
    _Painter(pose, image, shade).paint()
    clutter(image, random)
    return _develop(image.reduce(FINE), shade.reduce(FINE), random)


def _develop(image: Image.Image, shade: Image.Image, random: np.random.Generator) -> Pixels:
    """Multiply the image by its shadows; simulate the exposure, light colour, contrast and grain of a photograph."""
    soft = np.asarray(shade.filter(ImageFilter.BoxBlur(shade.width / 50)), np.float32) / 255
    values = np.asarray(image, np.float32) * soft[..., None]
    light = random.uniform(0.72, 1.18) * (1 + random.normal(0, 0.05, 3)).astype(np.float32)
    slope = random.normal(0, 0.12, 2).astype(np.float32)
    along = np.linspace(-1, 1, image.width, dtype=np.float32)
    gradient = 1 + slope[0] * along[:, None, None] + slope[1] * along[None, :, None]
    contrast = random.uniform(0.8, 1.1)
    grain = random.uniform(2, 7) * random.standard_normal(values.shape, np.float32)
    values = ((values - 110) * contrast + 110) * (light * gradient) + grain
    pixels: Pixels = values.clip(0, 255).astype(np.uint8)
    return pixels


class _Painter:
    """Painter that draws a bird in one pose: its colours into `image`, its shadows into `shade`."""

    def __init__(self, pose: Pose, image: Image.Image, shade: Image.Image) -> None:
        self.pose, self.species = pose, pose.species
        self._ink, self._shade = ImageDraw.Draw(image), ImageDraw.Draw(shade)

    def paint(self) -> None:
        """Draw all body parts, from back to front."""
        marks = self.species.marks
        self._paint_legs()
        self._paint_tail("tail_tip" in marks)
        if self.pose.raised:
            self._paint_raised_wing(far=True)
        self._paint_body()
        self._paint_breast(marks)
        if "collar" in marks:
            self._patch(0.16, 0.26, -1.0, 1.0, "accent")
        self._paint_head(marks)
        if self.pose.raised:
            self._paint_raised_wing(far=False)
        else:
            self._paint_wing("bars" in marks)

    def _paint_legs(self) -> None:
        width = max(1, round(0.028 * self.pose.unit))
        for hip, foot in zip(self.pose.hips, self.pose.ground, strict=True):
            knee = (hip + foot) / 2 - np.array([0.03, 0.0])
            self._line(np.array([hip, knee, foot]), "leg", width)
            for toe in (-0.06, 0.05, 0.09):
                self._line(np.array([foot, foot + np.array([toe, 0.015])]), "leg", width)

    def _paint_tail(self, tip: bool) -> None:
        base, wide, fork = 0.06, self.species.family.tail_width, self.species.fork
        notch = 1 - 0.42 * fork if fork > 0 else 1.0
        end = 1.0 if fork >= 0 else 0.88
        edge = [(end, wide), (notch if fork > 0 else 1.0, 0.0), (end, -wide)]
        self._fill(self.pose.on_tail([(-0.15, base), *edge, (-0.15, -base)]), "wing")
        if tip:
            inner = [(x - 0.2, 0.95 * y) for x, y in reversed(edge)]
            self._fill(self.pose.on_tail([*edge, *inner]), "accent")
        self._dark(self.pose.on_tail([(0, 0), (notch, 0.0), (end, -wide), (0, -base)]), 205)

    def _paint_body(self) -> None:
        self._patch(0.0, 1.0, -1.0, 1.0, "under")
        self._patch(0.0, 1.0, -1.0, np.array([0.2, 0.1, -0.35, -0.2, 0.0, 0.3, 0.6]), "upper")
        head = self.species.head
        if head != self.species.upper:
            self._patch(0.0, 0.2, -1.0, 1.0, "head")
        self._dark(self.pose.strip(0.1, 1.0, 0.45, 1.0), 175)
        self._dark(self.pose.strip(0.1, 0.9, 0.78, 1.0), 140)

    def _paint_breast(self, marks: frozenset[str]) -> None:
        if "band" in marks:
            self._patch(0.36, 0.47, -0.25, 1.0, "accent")
        if "spots" in marks:
            size = 0.032 * self.pose.unit
            places = [(0.40 + 0.03 * n % 0.42 + 0.02 * t, 0.42 + 0.38 * v) for n, (t, v) in enumerate(self.pose.spots)]
            for where in self.pose.on_canvas(self.pose.on_body(places)):
                self._ink.ellipse([*(where - size), *(where + size)], fill=self.pose.colours["accent"])
        if "streaks" in marks:
            for number in range(9):
                v = -0.05 + 0.11 * number
                line = [(0.30 + 0.05 * (number % 2), v), (0.52, v + 0.02), (0.74 - 0.03 * (number % 3), v)]
                self._line(self.pose.on_body(line), "accent", max(1, round(0.026 * self.pose.unit)))

    def _paint_head(self, marks: frozenset[str]) -> None:
        if "crest" in marks:
            self._fill(
                self.pose.on_head([(0.55, 0.75), (0.2, 1.45), (-0.75, 1.95), (-0.55, 1.3), (-1.15, 1.2), (-0.85, 0.4)]),
                "accent",
            )
        self._paint_bill()
        turns = np.linspace(0, 2 * math.pi, 24, endpoint=False)
        circle = np.stack([np.cos(turns), np.sin(turns)], 1)
        self._fill(self.pose.on_head(circle), "head")
        self._dark(self.pose.on_head([(x, y) for x, y in circle if y < -0.25]), 185)
        # The order matters, because later marks cover earlier ones.
        if "throat" in marks:
            self._fill(
                self.pose.on_head([(x, y) for x, y in circle if y < -0.2 and x > -0.55] + [(0.9, -0.2)]), "accent"
            )
            self._patch(0.08, 0.24, 0.25, 1.0, "accent")
        if "cap" in marks:
            self._fill(self.pose.on_head(_arc(25, 185)), "accent")
        if "mask" in marks:
            self._fill(
                self.pose.on_head([(1.0, 0.12), (0.55, 0.5), (-0.2, 0.45), (-0.95, 0.1), (-0.2, -0.1), (0.6, -0.15)]),
                "accent",
            )
        if "brow" in marks:
            self._fill(
                self.pose.on_head([(0.9, 0.36), (0.35, 0.72), (-0.3, 0.68), (-0.95, 0.3), (-0.3, 0.46), (0.35, 0.48)]),
                "accent",
            )
        # Eye with a reflection.
        middle = self.pose.on_canvas(self.pose.on_head([(0.36, 0.22)])[0])
        radius = 0.17 * self.species.family.head * self.pose.unit
        if "eye_ring" in marks:
            self._ink.ellipse([*(middle - 2.1 * radius), *(middle + 2.1 * radius)], fill=self.pose.colours["accent"])
        self._ink.ellipse([*(middle - 1.1 * radius), *(middle + 1.1 * radius)], fill=(18, 14, 14))
        glint = middle - 0.35 * radius
        self._ink.ellipse([*(glint - 0.3 * radius), *(glint + 0.3 * radius)], fill=(235, 235, 235))

    def _paint_bill(self) -> None:
        end, kind = 0.85 + self.pose.bill_length, self.species.family.bill
        shapes = {
            "cone": [(0.5, 0.55), (0.95, 0.42), (end, -0.08), (0.9, -0.38), (0.5, -0.5)],
            "needle": [(0.6, 0.26), (0.95, 0.18), (end, 0.0), (0.95, -0.12), (0.6, -0.2)],
            "chisel": [(0.6, 0.36), (1.0, 0.26), (end, 0.02), (0.98, -0.2), (0.6, -0.3)],
            "dagger": [(0.5, 0.42), (1.0, 0.30), (end, -0.02), (0.98, -0.26), (0.5, -0.36)],
            "flat": [
                (0.5, 0.40),
                (0.95, 0.28),
                (1.3, 0.02),
                (end, 0.04),
                (end + 0.08, -0.12),
                (end, -0.28),
                (0.6, -0.42),
            ],
        }
        self._fill(self.pose.on_head(shapes[kind]), "bill")
        self._dark(self.pose.on_head([(0.6, -0.02), (end, -0.03), (0.95, -0.24), (0.6, -0.32)]), 170)

    def _paint_wing(self, bars: bool) -> None:
        drop, far = self.pose.droop, self.species.family.wing
        tip = self.pose.spine[-1] + (0.2 + far) * self.pose.tail[0] - 0.3 * self.pose.radii[-6] * self.pose.normal[-4]
        top = self.pose.on_body([(0.36, -0.45 + drop), (0.50, -0.80), (0.68, -0.85), (0.85, -0.8)])
        low = self.pose.on_body([(0.88, 0.15 + drop), (0.70, 0.42 + drop), (0.52, 0.45 + drop), (0.38, 0.2 + drop)])
        self._fill(np.concatenate([top, tip[None], low]), "wing")
        self._dark(np.concatenate([self.pose.on_body([(0.66, -0.2)]), tip[None], low[:2]]), 165)
        for v in (-0.45, -0.1, 0.15):
            line = np.array(
                [self.pose.at(0.6, v + drop), self.pose.at(0.8, 0.8 * v + drop), 0.8 * tip + 0.2 * self.pose.at(0.9, v)]
            )
            self._dark(line, 130, max(1, round(0.014 * self.pose.unit)))
        if bars:
            width = max(1, round(0.045 * self.pose.unit))
            for t in (0.47, 0.58):
                self._line(self.pose.on_body([(t, -0.7), (t + 0.03, -0.15 + drop), (t, 0.35 + drop)]), "accent", width)

    def _paint_raised_wing(self, far: bool) -> None:
        lift = math.radians(self.pose.flap + (18 if far else 0))
        out = np.array([math.cos(lift), -math.sin(lift)])
        if not far:
            out = np.array([math.cos(lift + 0.25), -math.sin(lift + 0.25)])
        back = -self.pose.body
        root, heel = self.pose.at(0.36, -0.4), self.pose.at(0.72, -0.5)
        length = 0.62 + self.species.family.wing
        u = np.array([0.0, 0.25, 0.5, 0.75, 0.95, 1.0, 0.92, 0.8, 0.68, 0.55, 0.4, 0.2])[:, None]
        w = np.array([0.0, -0.06, -0.08, -0.03, 0.12, 0.22, 0.26, 0.29, 0.36, 0.39, 0.36, 0.36])[:, None]
        shape = np.concatenate([root + u * length * out + w * back, heel[None]])
        self._fill(shape, "wing")
        if far:
            self._dark(shape, 165)
            return
        self._dark(np.concatenate([shape[5:], root[None] + 0.3 * length * out + 0.16 * back]), 185)
        for feather in (6, 8, 10):
            self._dark(
                np.array([shape[feather], root + 0.35 * length * out + 0.1 * back]),
                130,
                max(1, round(0.014 * self.pose.unit)),
            )
        if "bars" in self.species.marks:
            for part in (0.38, 0.55):
                line = root + part * length * out + np.array([-0.04, 0.15, 0.34])[:, None] * back
                self._line(line, "accent", max(1, round(0.045 * self.pose.unit)))

    def _patch(self, t0: float, t1: float, v0: float, v1: float | Floats, part: str) -> None:
        self._fill(self.pose.strip(t0, t1, v0, v1), part)

    def _fill(self, points: Places, part: str) -> None:
        where = list(map(tuple, self.pose.on_canvas(np.asarray(points)).tolist()))
        self._ink.polygon(where, fill=self.pose.colours[part])
        self._shade.polygon(where, fill=255)

    def _line(self, points: Floats, part: str, width: int) -> None:
        where = list(map(tuple, self.pose.on_canvas(points).tolist()))
        self._ink.line(where, fill=self.pose.colours[part], width=width, joint="curve")

    def _dark(self, points: Places, level: int, width: int = 0) -> None:
        where = list(map(tuple, self.pose.on_canvas(np.asarray(points)).tolist()))
        if width:
            self._shade.line(where, fill=level, width=width)
        else:
            self._shade.polygon(where, fill=level)


def _arc(start: float, end: float) -> list[tuple[float, float]]:
    turns = np.radians(np.linspace(start, end, 12))
    return list(zip(np.cos(turns).tolist(), np.sin(turns).tolist(), strict=True))
