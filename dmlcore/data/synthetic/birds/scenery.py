"""Background and foreground of a drawn bird (sky, leaves, water, branches, twigs), independent of its species."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from dmlcore.data.synthetic.birds.species import Colour
from dmlcore.typing import Floats

BLURRED = 64  # side in pixels at which the background is drawn and blurred before it is enlarged

# pairs of background colours, at the upper and at the lower edge
SETTINGS: tuple[tuple[Colour, Colour], ...] = (
    ((150, 190, 228), (214, 226, 236)),  # clear sky
    ((196, 202, 208), (164, 172, 178)),  # overcast
    ((104, 146, 72), (62, 100, 48)),  # leaves
    ((58, 84, 52), (28, 46, 30)),  # deep wood
    ((182, 170, 110), (148, 130, 84)),  # dry grass
    ((120, 158, 176), (60, 98, 122)),  # water
    ((222, 206, 178), (186, 160, 126)),  # sand
    ((222, 186, 150), (130, 118, 128)),  # evening
)
LEAVES: tuple[Colour, ...] = ((72, 118, 50), (104, 150, 66), (50, 86, 46), (164, 148, 60), (170, 100, 48))
WOOD: tuple[Colour, ...] = ((92, 72, 54), (122, 104, 84), (64, 52, 44), (142, 128, 112))


def background(random: np.random.Generator, pixels: int) -> Image.Image:
    """Return a background of `pixels` per side: a colour gradient with blurred random shapes."""
    above, below = (np.array(colour) + random.normal(0, 10, 3) for colour in SETTINGS[random.integers(len(SETTINGS))])
    down = np.linspace(0, 1, BLURRED)[:, None, None]
    bend = down ** random.uniform(0.5, 2.0)
    image = Image.fromarray(
        np.broadcast_to((1 - bend) * above + bend * below, (BLURRED, BLURRED, 3)).clip(0, 255).astype(np.uint8)
    )
    ink = ImageDraw.Draw(image)
    mean = (above + below) / 2
    for _ in range(random.integers(6, 26)):
        base = mean if random.random() < 0.6 else np.array(_one(LEAVES + WOOD, random))
        x, y = random.uniform(-5, BLURRED + 5, 2)
        w, h = random.uniform(2, 15, 2)
        ink.ellipse([x - w, y - h, x + w, y + h], fill=_near(base, random, 26, 8))
    for _ in range(random.integers(0, 5)):
        ends = random.uniform(-8, BLURRED + 8, 4).tolist()
        ink.line(ends, fill=_near(_one(WOOD, random), random, 10), width=int(random.integers(1, 6)))
    image = image.filter(ImageFilter.GaussianBlur(float(random.uniform(0.6, 3.0))))
    return image.resize((pixels, pixels), Image.Resampling.BILINEAR)


def perch(image: Image.Image, feet: Floats, random: np.random.Generator) -> None:
    """Draw a random support under the feet (2, 2): branch, trunk, ground, water, or nothing for a bird in the air."""
    ink, pixels = ImageDraw.Draw(image), image.width
    kind = random.choice(["branch", "branch", "branch", "trunk", "ground", "water", "air"])
    x, y = np.minimum(feet.mean(0), pixels - 1)
    # Draw these random numbers for every kind of perch; otherwise the images of existing seeds would change.
    wood = _near(_one(WOOD, random), random, 10)
    slope, thick = random.normal(0, 0.22), random.uniform(0.02, 0.06) * pixels
    if kind == "branch":
        _branch(ink, (x, y), wood, slope, thick, random, pixels)
    elif kind == "trunk":
        _trunk(ink, x, wood, random, pixels)
    elif kind in ("ground", "water"):
        _ground(ink, y, random, pixels, water=kind == "water")


def _branch(
    ink: ImageDraw.ImageDraw,
    at: tuple[float, float],
    wood: Colour,
    slope: float,
    thick: float,
    random: np.random.Generator,
    pixels: int,
) -> None:
    """Draw a branch across the image through the point `at`, lit from above, with some leaves."""
    x, y = at
    bend = random.normal(0, 0.06) * pixels
    ends = [
        (-0.1 * pixels, y - slope * (x + 0.1 * pixels) + bend),
        (x, y + thick * 0.7),
        (1.1 * pixels, y + slope * (1.1 * pixels - x) + bend),
    ]
    ink.line(ends, fill=wood, width=round(2 * thick), joint="curve")
    light = _near(np.array(wood) + 26.0, random, 6)
    ink.line([(a, b - 0.5 * thick) for a, b in ends], fill=light, width=round(0.6 * thick))
    for _ in range(random.integers(0, 6)):
        _leaf(ink, (random.uniform(0, pixels), y + random.normal(0, 0.10) * pixels), random, pixels)


def _trunk(ink: ImageDraw.ImageDraw, x: float, wood: Colour, random: np.random.Generator, pixels: int) -> None:
    """Draw an upright trunk at the position x, wider at its foot, with cracks in its bark."""
    wide = random.uniform(0.08, 0.2) * pixels
    left = x - wide * random.uniform(0.2, 0.8)
    ink.polygon(
        [(left, -5), (left + wide, -5), (left + 1.1 * wide, pixels + 5), (left - 0.1 * wide, pixels + 5)], fill=wood
    )
    for _ in range(10):
        at = random.uniform(0, pixels)
        crack = [
            (left + wide * random.uniform(0, 0.8), at),
            (left + wide * random.uniform(0.2, 1), at + 0.08 * pixels),
        ]
        ink.line(crack, fill=_near(np.array(wood) - 22.0, random, 8), width=max(1, pixels // 90))


def _ground(ink: ImageDraw.ImageDraw, y: float, random: np.random.Generator, pixels: int, *, water: bool) -> None:
    """Draw ground with blades of grass or, if `water`, water with horizontal ripples, from y to the lower edge."""
    tone = np.array(SETTINGS[5 if water else int(random.choice([2, 4, 6]))][1])
    ink.rectangle([0, y - 0.01 * pixels, pixels, pixels], fill=_near(tone, random, 14))
    for _ in range(14):
        a, b = random.uniform(0, pixels), random.uniform(y, pixels + 1)
        reach = random.uniform(0.02, 0.12) * pixels
        up = 0.0 if water else -random.uniform(0.2, 1.0) * reach
        ink.line([(a, b), (a + reach, b + up)], fill=_near(tone, random, 34), width=max(1, pixels // 80))


def clutter(image: Image.Image, random: np.random.Generator) -> None:
    """Draw random leaves and twigs in front of the bird; half of the images have none."""
    ink, pixels = ImageDraw.Draw(image), image.width
    if random.random() < 0.5:
        return
    for _ in range(random.integers(1, 4)):
        if random.random() < 0.6:
            edge = random.uniform(0, pixels, 2)
            edge[int(random.integers(2))] *= random.choice([0.25, 1.0])
            _leaf(ink, (float(edge[0]), float(edge[1])), random, pixels)
        else:
            a, b, c = random.uniform(-0.1, 1.1, 3) * pixels
            width = max(1, round(random.uniform(0.008, 0.022) * pixels))
            ink.line(
                [(a, -5), ((a + b) / 2 + c * 0.1, pixels / 2), (b, pixels + 5)],
                fill=_near(_one(WOOD + LEAVES, random), random, 12),
                width=width,
                joint="curve",
            )


def _leaf(ink: ImageDraw.ImageDraw, at: tuple[float, float], random: np.random.Generator, pixels: int) -> None:
    length, turn = random.uniform(0.06, 0.16) * pixels, random.uniform(0, 2 * math.pi)
    wide = length * random.uniform(0.18, 0.34)
    along = np.array([math.cos(turn), math.sin(turn)])
    across = np.array([-along[1], along[0]])
    shape = [(0.0, 0.0), (0.3, 0.9), (0.6, 0.8), (1.0, 0.0), (0.6, -0.8), (0.3, -0.9)]
    points = [tuple((np.array(at) + u * length * along + v * wide * across).tolist()) for u, v in shape]
    colour = _near(_one(LEAVES, random), random, 12)
    ink.polygon(points, fill=colour)
    ink.line([points[0], points[3]], fill=_near(np.array(colour) - 24.0, random, 4), width=max(1, pixels // 150))


def _one(colours: tuple[Colour, ...], random: np.random.Generator) -> Colour:
    return colours[int(random.integers(len(colours)))]


def _near(colour: Floats | Colour, random: np.random.Generator, light: float, hue: float = 6.0) -> Colour:
    """Return a random colour near `colour`; `light` and `hue` are the deviations of brightness and single channels."""
    shift = light * random.standard_normal()
    red, green, blue = (
        min(255, max(0, int(value + shift + hue * random.standard_normal())))
        for value in (colour[0], colour[1], colour[2])
    )
    return red, green, blue
