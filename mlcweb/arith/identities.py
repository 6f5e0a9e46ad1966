"""Identities of integers, which the local rules apply from left to right.

In the texts `x`, `y`, `z` and `w` are any expressions, `c`, `d` and `e` constants, and `k` and `l`
constants that may be left out: `x + k` is x alone, too, with k 0. `div` and `mod` are `//` and `%`
in one identity, and division towards zero in another (`tdiv`, `tmod`). The operands of sums and
products are matched in either order, but for those `IN_ORDER`, and those of a minimum or of `and`
as they stand. An identity that has `min` holds with minimum and maximum exchanged, too, except for
`ROUNDING`, and one of `COMPARISONS` with `<=` for `<`. Nothing is divided by 0.

Conditions may ask what is known: `nonneg(x, …)`, and whether two differences, x - y and z - w, are
the `same(x, y, z, w)`.
"""

SUMS = """
(x - y) + y -> x
x + (y - x) -> y
min(x, y + c) + d -> min(x + d, y) if c == -d
min(x + c, y) + d -> min(x, y + d) if c == -d
min(x, y) - min(z, w) -> x - z if same(x, z, y, w)
min(x, y) - min(z, w) -> x - w if same(x, w, y, z)
div(x, y) * y + mod(x, y) -> x
(x % c + d) // c + x // c -> (x + d) // c if c > 0
x % 2 + (x + c) % 2 -> 1 if c % 2
x // 2 + x % 2 -> (x + 1) // 2
(x + 1) // 2 - x % 2 -> x // 2
(x + k) // 2 - (x + l) // 2 -> x % 2 * (k % 2 - l % 2) + (k // 2 - l // 2)
(x % 2 + 1) // 2 -> x % 2
(x + k) // c - (x + l) // c -> ((x + l) % c + (k - l)) // c if c > 0 and k > l
((x + k) // c + d) - (x + l) // c -> ((x + l) % c + (k - l)) // c + d if c > 0 and k > l
tdiv(x + k, c) - tdiv(x + l, c) -> tdiv(tmod(x + l, c) + (k - l), c) if nonneg(x + l, k - l, c)
x - div(x, y) * y -> mod(x, y)
div(x, y) * y - x -> 0 - mod(x, y)
(x + k) - div(x + l, c) * c -> mod(x + l, c) + (k - l)
div(x + l, c) * c - (x + k) -> (l - k) - mod(x + l, c)
x - div(x + y, c) * c -> mod(x + y, c) - y
div(x + y, c) * c - x -> y - mod(x + y, c)
x - div(x - y, c) * c -> mod(x - y, c) + y
div(x - y, c) * c - x -> 0 - mod(x - y, c) - y
x * d - div(x, c) * e -> mod(x, c) * d if e == c * d
div(x, c) * e - x * d -> mod(x, c) * -d if e == c * d
x * d - div(x + y, c) * e -> (mod(x + y, c) - y) * d if e == c * d
div(x + y, c) * e - x * d -> (y - mod(x + y, c)) * d if e == c * d
x * d - div(x - y, c) * e -> (mod(x - y, c) + y) * d if e == c * d
div(x - y, c) * e - x * d -> (0 - mod(x - y, c) - y) * d if e == c * d
"""

DIVISIONS = """
(x * c + k) // d -> x // (d // c) + k // d if 0 < c < d and d % c == 0 and k // c * c % d == 0
(x * c + y) // d -> x * (c // d) + y // d if d > 0 == c % d
(x * c + y + z) // d -> x * (c // d) + (y + z) // d if d > 0 == c % d
(x + c) // d -> x // d + c // d if d > 0 == c % d
(x - x % c) // c -> x // c
(x + y) // x -> y // x + 1 if nonneg(x)
(x * c + y) % d -> y % d if d > 0 == c % d
(x - x % c) % d -> 0 if d > 0 == c % d
(x + x * c % d) % d -> 0 if (c + 1) % d == 0
(x - x % y) % y -> 0
(x - x % (y * c)) % y -> 0 if abs(c) == 1
(x + x * c % y) % y -> 0 if c == -1
tdiv(tdiv(x, c) + d, e) -> tdiv(x + c * d, c * e) if c > 0 and e > 0 and d >= 0 and nonneg(x)
tdiv(x + c, d) -> tdiv(x, d) + c // d if d > 0 and c >= 0 and c % d == 0 and nonneg(x)
tdiv(x + y, x) -> tdiv(y, x) + 1 if nonneg(x, y)
"""

IN_ORDER = """
c * x -> x * c
tdiv(x * c + y + z, d) -> x * (c // d) + tdiv(y + z, d) if d > 0 == c % d and nonneg(x * c, y + z)
tdiv(y + x * c + z, d) -> x * (c // d) + tdiv(y + z, d) if d > 0 == c % d and nonneg(x * c, y + z)
tdiv(x * c + y, d) -> x * (c // d) + tdiv(y, d) if d > 0 == c % d and nonneg(x * c, y)
tdiv(y + x * c, d) -> tdiv(y, d) + x * (c // d) if d > 0 == c % d and nonneg(x * c, y)
tdiv(min(x * c, y), d) -> min(x * (c // d), tdiv(y, d)) if d > 0 == c % d
tdiv(min(y, x * c), d) -> min(tdiv(y, d), x * (c // d)) if d > 0 == c % d
tdiv(x * z + y, z) -> x + tdiv(y, z) if nonneg(x, y, z)
tdiv(z * x + y, z) -> x + tdiv(y, z) if nonneg(x, y, z)
tdiv(y + x * z, z) -> tdiv(y, z) + x if nonneg(x, y, z)
tdiv(y + z * x, z) -> tdiv(y, z) + x if nonneg(x, y, z)
(x * z + y) // z -> x + y // z if nonneg(z)
(z * x + y) // z -> x + y // z if nonneg(z)
(y + x * z) // z -> y // z + x if nonneg(z)
(y + z * x) // z -> y // z + x if nonneg(z)
(x + y + z) // x -> (y + z) // x + 1 if nonneg(x)
(y + x + z) // x -> (y + z) // x + 1 if nonneg(x)
(y + (x + z)) // x -> (y + z) // x + 1 if nonneg(x)
(y + (z + x)) // x -> (y + z) // x + 1 if nonneg(x)
tdiv(x + y + z, x) -> tdiv(y + z, x) + 1 if nonneg(x, y + z)
tdiv(y + x + z, x) -> tdiv(y + z, x) + 1 if nonneg(x, y + z)
tdiv(y + (x + z), x) -> tdiv(y + z, x) + 1 if nonneg(x, y + z)
tdiv(y + (z + x), x) -> tdiv(y + z, x) + 1 if nonneg(x, y + z)
"""

EXTREMA = """
min(0 - x * c, 0) -> max(x, 0) * -c if c > 0
min(div(x, c), div(y, c)) -> div(min(x, y), c) if c > 0
min(div(x, c), div(y, c)) -> div(max(x, y), c) if c < 0
"""

ROUNDING = """
min(div(x + c, d) * d, x) -> x if c == d - 1 and c > 0
min(x, div(x + c, d) * d) -> x if c == d - 1 and c > 0
max(div(x + c, d) * d, x) -> div(x + c, d) * d if c == d - 1 and c > 0
max(x, div(x + c, d) * d) -> div(x + c, d) * d if c == d - 1 and c > 0
min(div(x + c, d) * d, max(x, d)) -> max(x, d) if c == d - 1 and c > 0 and nonneg(x - 1)
min(max(x, d), div(x + c, d) * d) -> max(x, d) if c == d - 1 and c > 0 and nonneg(x - 1)
max(div(x + c, d) * d, max(x, d)) -> div(x + c, d) * d if c == d - 1 and c > 0 and nonneg(x - 1)
max(max(x, d), div(x + c, d) * d) -> div(x + c, d) * d if c == d - 1 and c > 0 and nonneg(x - 1)
"""

COMPARISONS = """
x * c < y * c -> x < y if c > 0
x * c < y * c -> y < x if 0 > c
div(x + k, c) * c < x -> k < mod(x + k, c)
x < div(x + k, c) * c -> mod(x + k, c) < k
x < (div(x + k, c) + d) * c -> mod(x + k, c) < k + d * c
(div(x + k, c) + d) * c < x -> k + d * c < mod(x + k, c)
x < div(x + k, c) * c + d -> mod(x + k, c) < k + d
div(x + k, c) * c + d < x -> k + d < mod(x + k, c)
div(x + k, c) * c < x + y -> k < mod(x + k, c) + y
x + y < div(x + k, c) * c -> mod(x + k, c) + y < k
div(x + k, c) * c < x - y -> y + k < mod(x + k, c)
x - y < div(x + k, c) * c -> mod(x + k, c) < y + k
"""

CONDITIONS = """
x // c == d and x % c == e -> x == c * d + e if 0 <= e < c
x % c == e and x // c == d -> x == c * d + e if 0 <= e < c
x // c == d and x % c < e -> c * d <= x and x < c * d + e if 0 < e <= c
x // c == d and x % c <= e -> c * d <= x and x <= c * d + e if 0 <= e < c
x // c == d and e < x % c -> c * d + e < x and x < c * d + c if 0 <= e < c
x // c == d and e <= x % c -> c * d + e <= x and x < c * d + c if 0 <= e < c
0 <= x - y * c and x - y * c < c -> y == x // c if c > 0
x - y * c < c and 0 <= x - y * c -> y == x // c if c > 0
"""
