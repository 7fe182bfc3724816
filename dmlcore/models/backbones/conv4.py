"""Conv4, a network of four convolution blocks from the few-shot literature."""

from __future__ import annotations

from torch import Tensor, nn

from dmlcore.models.backbones.base import Headless, backbone, convolution, initialise


@backbone("conv4")
class Conv4(Headless):
    """Conv4: normalised images (B, 3, H, W) to features (B, 64, H // 8, W // 8), 3 x 3 for images of 28 pixels.

    Each block is a 3 x 3 convolution, batch norm and ReLU; the first three are followed by a 2 x 2 max pooling. In the
    literature the fourth block is also followed by a max pooling, and the result is flattened; here the last feature
    map is the output. The weights are He initialised.

    Reference:
        Vinyals et al. 2016, Snell et al. 2017.
    """

    out_channels, smallest = 64, 16

    @property
    def depths(self) -> dict[str, int]:
        """Number of channels of the second and third blocks, by block number."""
        return dict.fromkeys(("2", "3"), self.out_channels)

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = self.out_channels
        for inward in (3, width, width, width):
            if layers:
                layers.append(nn.MaxPool2d(2))
            layers += [convolution(inward, width, 3), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        self.blocks = nn.Sequential(*layers)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (B, out_channels, h, w) of images (B, 3, H, W)."""
        maps: Tensor = self.blocks(images)
        return maps

    def with_depths(self, images: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the features, and the outputs of the second and third blocks before max pooling."""
        second = self.blocks[:7](images)
        third = self.blocks[7:11](second)
        return self.blocks[11:](third), (second, third)


@backbone("conv4_32")
class Conv4Narrow(Conv4):
    """`Conv4` with 32 channels, as in Finn et al. 2017: a quarter of the weights, a third of the training time."""

    out_channels = 32
