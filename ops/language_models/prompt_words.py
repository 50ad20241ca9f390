"""The words that prompts are made of: names, things that one can like, everyday words, and a text of our own."""


def _words(text: str) -> list[str]:
    return text.split()


NAMES = _words(
    """
    Julia Luke Frank Nancy Scott Rose Linda Michael Kevin Thomas Anna Leo Daniel Steve Paul Mike Peter Mary John
    Alice Bob Carol David Emma Grace Henry Jack Kate Laura Mark Nora Oscar Robert Sam Simon Susan Tom Victor
    Adam Alan Albert Andrew Barbara Ben Brian Chris Claire Diana Eric Eva George Helen Ian Jane James Jim Joe
    Joseph Karen Martin Max Oliver Patrick Philip Rachel Richard Roger Ruth Sarah Sophie Stephen Ted Tim Walter
    William Amy Arthur Charles Edward Elizabeth Emily Fred Harry Howard Jason Jennifer Jessica Johnny Jonathan
    Keith Larry Lisa Louis Margaret Maria Matthew Melissa Nick Pat Ralph Ray Ron Ryan Sandra Sean Sharon Tony
    Wayne
    """
)
THINGS = _words(
    """
    cheese shoes sheep planes stars milk coats ducks movies toys silver hats games sugar salt tea coffee books
    cars music trees birds cats dogs horses bread fish rice fruit wine gold snow rain boats trains bikes maps
    songs poems stories flowers roses gardens rivers mountains beaches lakes stones shells coins stamps pens
    paper paint clay glass wood iron wool silk boots gloves bags boxes clocks lamps chairs tables beds doors
    windows bells drums apples lemons grapes nuts beans corn soup eggs butter honey cakes pies chess cards dice
    """
)
CITIES = _words(
    """
    Paris London Rome Berlin Madrid Vienna Prague Dublin Oslo Athens Moscow Cairo Delhi Tokyo Boston Chicago
    Dallas Denver Houston Miami Seattle Toronto Montreal Sydney Melbourne Brussels Amsterdam Barcelona Munich
    Hamburg Milan Naples Geneva Zurich Lisbon Warsaw Budapest Istanbul Jerusalem Baghdad Shanghai Beijing
    Singapore Manchester Liverpool Oxford Cambridge Edinburgh Glasgow Philadelphia Atlanta Detroit Phoenix
    Portland Cleveland
    """
)
WORDS = _words(
    """
    apple table river stone light water paper house green music bread cloud chair horse plant ocean night glass
    field metal story dance voice storm heart train sugar candle garden bridge winter summer window mirror
    button pocket forest island valley desert silver copper market village castle church school doctor farmer
    sailor writer painter father mother sister brother morning evening corner circle square number letter color
    shadow picture
    """
)
TEXT = (
    "The harbour wakes before the town does. When the first light reaches the quay, two or three boats are "
    "already on their way out, and the gulls that sleep on the roof of the customs house follow them for a while "
    "before they turn back. An old woman sweeps the steps of the bakery. She has done so every morning since her "
    "husband bought the oven, and although the oven has been replaced twice, the steps are the same. By seven the "
    "market square fills up. Farmers from the valley unload crates of apples, onions and late beans; a man with a "
    "cart sells knives that he sharpens while you wait. Children cut across the square on the way to school and "
    "are told, as always, to keep away from the fountain. At noon the bells ring from both churches, never quite "
    "together, and the clerks come out to eat in the shade of the plane trees. In the afternoon the wind changes. "
    "It comes in from the sea and carries the smell of salt and tar through the narrow streets, and people who "
    "have lived here long enough know from it whether the night will be calm. The library closes at five, the "
    "post office a little later. Somebody practises the violin on the second floor of the house by the bridge, "
    "the same difficult passage again and again, until it suddenly works. Then the boats return. There is "
    "shouting, there is laughter, boxes of fish are carried up the ramp, and a cat that belongs to nobody takes "
    "what it considers its share. After dark only the lamp at the end of the mole is left. It turns slowly, "
    "lights the wall of the old mill for a moment, passes over the empty square and returns to the water. A "
    "hundred years ago a keeper had to climb the tower twice a night to wind the mechanism; today a clock does "
    "it, but the keeper's room is still there, with a bed, a table, a map of the coast and a small window that "
    "looks west. Visitors may see it on Sundays. Most of them stay for a few minutes, read the names that "
    "somebody scratched into the frame of the door, and walk back along the mole in the wind. Those who stay "
    "longer say that the sound of the sea is different up there, slower and farther away, as if it came from "
    "another part of the world."
)
