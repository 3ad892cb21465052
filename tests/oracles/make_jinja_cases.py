#!/usr/bin/env python3
"""Writes src/text/jinja/testdata/cases.json: templates, variables and what jinja2 renders.

    python3 tests/oracles/make_jinja_cases.py

A case whose "text" is null is one that jinja2 refuses; so must we. Needs jinja2 3.1.6.
"""
import json
import pathlib

import jinja2

from jinja_oracle import ENV, render

ROOT = pathlib.Path(__file__).resolve().parents[2]

VARS = {
    "s": "Hello, World", "u": "Größe ß Σίσυφος 日本語 😀", "blank": "  \t padded\n ", "empty": "",
    "i": 7, "n": -3, "f": 2.5, "t": True, "no": False, "none": None,
    "xs": [3, 1, 2], "names": ["bob", "Alice", "carol", "alice"], "nested": [[1, 2], [3, [4]]],
    "d": {"b": 1, "A": 2, "c": [1, "x", None, True, 1.5], "items": "shadowed"},
    "rows": [{"name": "a", "size": 3, "tag": {"x": 1}}, {"name": "B", "size": 1, "tag": {"x": 2}},
             {"name": "c", "size": 3}],
    "quote": "it's \"quoted\" \\ \n\t end", "lines": "one\n\n  two\r\nthree\n", "html": "<a href='x'>&</a>",
    "words": "the quick-brown fox (jumps) over", "path": "a/b/c.tar.gz", "num": "42", "hex": "0x1F",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi  "},
                 {"role": "assistant", "content": "Hello!"},
                 {"role": "user", "content": [{"type": "text", "text": "part"}]}],
}

# Each is put in {{ }}.
EXPRESSIONS = r"""
1
-1
+1
1_000
0x1f
0b101
0o17
1.5
1e3
1.5e-3
1e16
1e22
123456789.123
0.1
1e-5
0.0001
100000000000000000.0
1.0
-0.0
2**10
2**-1
2**0.5
2**3**2
-2**2
(-8)//3
8//-3
-8%3
8%-3
7/2
6/2
7//2
7.5//2
-7.5//2
7.5%2
-7.5%2
1+2*3
(1+2)*3
1-2-3
10/4*2
1/0
1//0
1%0
1.0/0
0**-1
9223372036854775807
9223372036854775807+0
-9223372036854775808
1 + true
true + true
true * 3
i + f
i ~ f ~ t ~ none
'a' 'b' "c"
'a' ~ 1 ~ 2.0 ~ none ~ true
'a' + 'b'
'a' + 1
1 + 'a'
'ab' * 3
3 * 'ab'
'ab' * 0
'ab' * -1
[1] * 2
[1] + [2]
(1,) + (2,)
[1] + (2,)
(1, 2) * 2
none + 1
undefined_name
undefined_name.x
undefined_name['x']
undefined_name + 1
undefined_name == undefined_name
undefined_name is defined
undefined_name|length
undefined_name|default('x')
undefined_name or 'y'
undefined_name()
undefined_name < 1
not undefined_name
[undefined_name]
'a' in undefined_name
undefined_name in 'abc'
s.nope
s.nope.nope
d.nope
d['nope']
d.nope.nope
none.x
i.x
i == 7
i != 7
i < 8 < 9
1 < 2 > 1
1 < 3 < 2
1 == 1.0
1 == true
'1' == 1
none == false
none == none
[1,2] == [1,2]
[1,2] == (1,2)
(1,2) == (1,2)
[1,2] < [1,3]
[1] < [1,0]
'a' < 'b'
'a' < 'B'
'a' < 1
none < 1
[1] < 1
{'a':1,'b':2} == {'b':2,'a':1}
1 in xs
5 not in xs
'Hello' in s
'hello' in s
'' in s
1 in 'abc'
'b' in d
'z' in d
'ß' in u
[1] in [[1]]
true and 'x'
0 or 'x'
'' or none or 'z'
1 and 0 and 2
not 1
not not ''
not 1 == 2
1 if true else 2
1 if false
(1 if false) is defined
'a' if i > 5 else 'b' if i > 3 else 'c'
1 is number
1 is integer
1.0 is integer
1.0 is float
true is number
true is integer
true is boolean
1 is boolean
true is true
1 is true
false is false
none is none
none is defined
'x' is string
1 is string
d is mapping
xs is mapping
xs is sequence
s is sequence
d is sequence
1 is sequence
xs is iterable
s is iterable
1 is iterable
undefined_name is iterable
undefined_name is sequence
range(3) is sequence
range(3) is iterable
3 is odd
4 is even
3 is even
'a' is odd
9 is divisibleby 3
9 is divisibleby(4)
'abc' is lower
'ABC' is upper
'aBc' is lower
'1' is upper
1 is eq 1
1 is equalto 2
1 is ne 2
1 is lt 2
1 is gt 2
1 is le 1
1 is ge 2
1 is in [1,2]
'a' is in 'abc'
1 is not in [1,2]
1 is sameas 1
true is sameas true
none is sameas none
xs is sameas xs
range is callable
s is callable
s.upper is callable
undefined_name is callable
'upper' is filter
'nope' is filter
'odd' is test
1 is not none
1 is not defined
not 1 is defined
x is defined and x
'a' is string and 1 is number
1 is nope
s[0]
s[-1]
s[100]
s[1:4]
s[:3]
s[3:]
s[::-1]
s[::2]
s[-5:-2]
s[10:2]
s[-100:100]
s[::0]
s[5:1:-1]
s[none:2]
u[0:5]
u[2]
u[-1]
u[::-1]
u|length
xs[0]
xs[-1]
xs[9]
xs[9] is defined
xs[1:]
xs[::-1]
xs[0:10:2]
xs['a']
xs.0
xs[1.0]
(1,2,3)[1:]
range(10)[2:5]
range(10)[3]
range(5)|list
range(1,10,3)|list
range(5,0,-2)|list
range(0)|list
range(3)
range(0, 10, 2)
range(1,1)|length
range(0,10,0)
range()
range('a')
range(1000000)
d['b']
d.b
d.A
d['c'][1]
d.c.0
d.items
d['items']
d.get('b')
d.get('zz')
d.get('zz', 5)
d.keys()
d.keys()|list
d.values()|list
d.items()|list
d.items()
d.values()
d|length
d|list
d
d.pop('b')
d.update({})
d.clear()
d.setdefault('a')
d.copy()
xs.append(1)
xs.extend([1])
xs.pop()
xs.sort()
xs.reverse()
xs.insert(0,1)
xs.remove(1)
xs.index(1)
xs.index(9)
xs.count(1)
xs.copy()
(1,2,1).count(1)
(1,2).index(2)
s.__class__
s.__class__.__mro__
d.__class__.__name__
''.__class__.__base__.__subclasses__()
cycler.__init__
cycler.__init__.__globals__
s['__class__']
s|attr('__class__')
s|attr('upper')
d._x
d.__x
[1, 'a', none, true, 1.5, (1,), (1,2), {}, {'a': [1]}]
{}
{'a': 1, 'b': {'c': 2}}
{1: 'a', none: 'b', true: 'c'}
{'a': 1, 'a': 2}
{[1]: 2}
[]
()
(1,)
(1, 2)
1, 2
[1, 2,]
{'a': 1,}
(1)
quote
[quote]
['\x00\x7f\x80\u200b\ud7ff\U0001F600é']
["it's"]
['"']
['\'"']
'\n\t\\\'\"\a\b\f\v\r'
'\101\x41\u0041\U00000041'
'\q\z'
'a\
b'
u
[u]
none
true
f
3.0
[1.0, 1e100]
1e400
-1e400
s|upper
s|lower
s|title
s|capitalize
u|upper
u|lower
u|title
u|capitalize
words|title
words|capitalize
'ǆ'|capitalize
'ŉ'|upper
'İ'|lower
'ΑΣ'|lower
'ΑΣ Σ ΣΑ'|lower
u.title()
words.title()
"they're bill's".title()
u.capitalize()
blank|trim
blank|trim ~ '|'
'xxaxx'|trim('x')
'xyaxy'.strip('xy')
' a '.lstrip() ~ '|'
' a '.rstrip() ~ '|'
'\u00a0a\u3000'.strip()
'abc'.lstrip('ba')
'日本日'.strip('日')
'日本日'.rstrip('日')
s|replace('l','L')
s|replace('l','L',1)
s|replace('','-')
s|replace('zzz','-')
s.replace('l','L',2)
s.replace('o','')
'aaa'.replace('','-',2)
u|replace('ß','ss')
1|replace(1,2)
s|length
xs|length
1|length
none|length
d|count
s|first
s|last
xs|first
xs|last
[]|first
[]|last
[]|first is defined
d|first
xs|join
xs|join(',')
xs|join('-')|upper
names|join(', ')
rows|join(',', attribute='name')
[1,none,'a',undefined_name]|join('|')
s|join('.')
1|join
xs|list
s|list
'日本'|list
1|list
d|dictsort
d|dictsort(true)
d|dictsort(by='key', reverse=true)
{'a':3,'b':1}|dictsort(by='value')
{'a':3,'b':1}|dictsort(by='nope')
{'a':3,1:1}|dictsort
xs|sort
xs|sort(reverse=true)
names|sort
names|sort(case_sensitive=true)
names|sort(reverse=true)
rows|sort(attribute='size')|map(attribute='name')|list
rows|sort(attribute='size,name')|map(attribute='name')|list
rows|sort(attribute='size', reverse=true)|map(attribute='name')|join
[1,'a']|sort
names|unique|list
names|unique(true)|list
[1,1.0,true,2]|unique|list
xs|min
xs|max
names|min
names|max
[]|min
rows|max(attribute='size')
rows|min(attribute='size')
xs|sum
[1,2.5]|sum
rows|sum(attribute='size')
xs|sum(start=10)
[]|sum
['a']|sum
xs|reverse|list
s|reverse
u|reverse
xs|map('string')|list
names|map('upper')|list
names|map('replace','a','_')|list
rows|map(attribute='name')|list
rows|map(attribute='tag.x')|list
rows|map(attribute='nope', default='-')|list
rows|map(attribute='tag.x', default=0)|list
xs|map('nope')|list
[[1,2],[3]]|map('length')|list
[[1,2],[3]]|map('first')|list
[[1,2],[3,4]]|map(attribute=1)|list
xs|select|list
[0,1,'',none,'a']|select|list
[0,1,'',none,'a']|reject|list
xs|select('odd')|list
xs|reject('odd')|list
xs|select('>', 1)|list
xs|select('in', [1,2])|list
xs|select('gt', 1)|list
rows|selectattr('tag')|map(attribute='name')|list
rows|selectattr('tag','defined')|map(attribute='name')|list
rows|rejectattr('tag','defined')|map(attribute='name')|list
rows|selectattr('size','equalto',3)|map(attribute='name')|list
rows|selectattr('size','==',3)|list|length
rows|selectattr('nope.nope')|list
messages|selectattr('role','equalto','user')|list|length
messages|rejectattr('role','equalto','system')|map(attribute='role')|join(',')
xs|select('nope')|list
xs|batch(2)|list
xs|batch(2,'x')|list
range(7)|slice(3)|list
range(7)|slice(3,'x')|list
xs|slice(0)|list
rows|groupby('size')|list
rows|groupby('size')|map(attribute='grouper')|list
names|groupby(0)|map('first')|list
rows|groupby('nope', default='z')|map('first')|list
s|tojson
d|tojson
u|tojson
quote|tojson
html|tojson
none|tojson
true|tojson
1.0|tojson
1e100|tojson
[]|tojson
{}|tojson
[[],{}]|tojson(indent=2)
d|tojson(indent=2)
d|tojson(indent=0)
d|tojson(indent='--')
d|tojson(sort_keys=true)
d|tojson(separators=(',',':'))
d|tojson(ensure_ascii=true)
u|tojson(ensure_ascii=true)
u|tojson(true)
nested|tojson(indent=1)
{1:2, none:3, true:4, 1.5:6}|tojson
{(1,2):3}|tojson
(1,2)|tojson
undefined_name|tojson
range(3)|tojson
xs|map('string')|tojson
'\x00\x1f\x7f\u2028'|tojson
d|tojson|length
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, true, true)
lines|indent('>> ', first=true)
'a'|indent
''|indent(first=true)
1|indent
'42'|int
'42.7'|int
' 42 '|int
'x'|int
'x'|int(5)
'0x1f'|int(0,16)
'1f'|int(base=16)
'077'|int(base=8)
'1_000'|int
4.9|int
-4.9|int
true|int
none|int
xs|int
'42'|float
'4.5e2'|float
'x'|float
'x'|float(1.5)
'inf'|float
'nan'|float
none|float
1|float
'1_0.5'|float
-5|abs
5.5|abs
n|abs
'a'|abs
2.5|round
3.5|round
-2.5|round
2.567|round(2)
2.5|round(method='floor')
2.1|round(method='ceil')
2.15|round(1)
1234.5|round(-2)
42|round
1255|round(-1)
42|round(1,'ceil')
2.5|round|int
2.5|round('x')
1|string
none|string
1.0|string|length
s|string
s|default('x')
none|default('x')
none|default('x', true)
''|default('x', true)
undefined_name|d
undefined_name|d(none)
html|escape
html|e
html|safe
s|wordcount
u|wordcount
'a_b c-d'|wordcount
words|truncate(10)
words|truncate(10, true)
words|truncate(10, false, '')
words|truncate(10, leeway=0)
words|truncate(100)
words|truncate(1)
'%s-%d'|format('a', 5)
'%(x)s'|format(x=1)
'%5s|%-5s|%05d'|format('a','b',42)
'%.2f'|format(3.14159)
'%x %X %o'|format(255,255,8)
'%e'|format(12345.678)
'%g'|format(0.0001)
'%%'|format
'%s'|format
'%s' % 'a'
'%s %s' % ('a', 'b')
'%s' % [1]
'%r' % 'a'
'%d' % 1.9
'%d' % 'a'
'%c' % 'a'
'%s %s' % 'a'
'%s' % ('a','b')
'%(a)s' % {'a': 1}
'%5.1f|' % 2.25
'%+d % d' % (1, 2)
'%#x' % 255
'%*d' % (5, 42)
'%.3s' % 'abcdef'
'%5%'
'{}'.format(1)
'{} {}'.format('a', 'b')
'{1} {0}'.format('a', 'b')
'{x}'.format(x=5)
'{0[a]}'.format({'a': 1})
'{0.a}'.format({'a': 1})
'{:>5}|{:<5}|{:^5}'.format('a','b','c')
'{:05d}'.format(42)
'{:.2f}'.format(3.14159)
'{:,}'.format(1234567)
'{:x}'.format(255)
'{:%}'.format(0.5)
'{!r}'.format('a')
'{{}}'.format()
'{'.format()
'{}'.format()
'{:*^9}'.format('mid')
'{:+}'.format(5)
'{:d}'.format('a')
'{:e}'.format(1234.5)
'{:.3}'.format('abcdef')
s.upper()
s.lower()
s.split()
s.split(',')
s.split(', ')[1]
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
' a  b '.split()
' a  b  c '.split(none, 1)
' a  b  c '.rsplit(none, 1)
' a  b  c '.rsplit()
''.split()
''.split(',')
'a'.split('')
'aXXbXXc'.split('XX')
'aaa'.split('aa')
'aaa'.rsplit('aa')
lines.splitlines()
lines.splitlines(true)
'a\x0bb\x1cc\u2028d'.splitlines()
s.startswith('Hello')
s.startswith(('x','H'))
s.startswith('World', 7)
s.endswith('World')
s.endswith('World', 0, 5)
s.startswith(1)
s.find('o')
s.find('o', 5)
s.find('o', 5, 6)
s.find('zz')
s.rfind('o')
u.find('日')
u.rfind('ß')
s.index('W')
s.index('zz')
s.count('l')
s.count('')
'aaa'.count('aa')
s.find('', 100)
s.find('', 12)
'-'.join(['a','b'])
'-'.join([1])
'-'.join('abc')
'-'.join(d)
'12'.isdigit()
'1a'.isdigit()
''.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'abc'.isalpha()
'日本'.isalpha()
'a1'.isalnum()
' \t'.isspace()
'AB'.isupper()
'ab'.islower()
'ab1'.islower()
'42'.zfill(5)
'-42'.zfill(5)
'a'.ljust(3) ~ '|'
'a'.rjust(3)
'a'.center(4) ~ '|'
'a'.center(5, '*')
'ab'.center(5, '*')
'a'.ljust(3, 'xx')
'a'|center(5) ~ '|'
'prefix-x'.removeprefix('prefix-')
'x.py'.removesuffix('.py')
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'a'.partition('=')
'a'.rpartition('=')
'a'.partition('')
s.nope()
s.upper(1)
s.upper
dict(a=1, b=2)
dict({'a':1}, b=2)
dict([('a',1),('b',2)])
dict([(1,2,3)])
namespace(a=1).a
namespace(a=1).b
namespace({'a':1}).a
namespace()
raise_exception('boom')
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y')
strftime_now('%A, %B %d, %Y %H:%M:%S %p %I %j %y %%')
strftime_now('%-d %-m %e')
d|items|list
none|items
undefined_name|items|list
xs|items
path.split('/')|last
(path.split('/')|last).split('.')|first
messages[0].content
messages[-1].content[0].text
messages[0]['role'] == 'system'
messages|length - 1
messages[1:]|length
messages[1:][0].role
messages|map(attribute='content')|select('string')|join('|')
messages|selectattr('content','string')|list|length
nested|map('sum')|list
[[1,2],[3]]|sum(start=[])
xs|sort|join(',')
-1|abs
-i|abs
(-1)|abs
2*3|string
1 + 2|int
'a' ~ 'b'|upper
not xs|length
i in xs|map('int')|list
[1,2][0] + 1
{'a':1}['a']
'abc'['upper']()
d['get']('b')
1.5.x
3 .x
'a'.upper().lower().title()
xs|nope
s|urlencode
'a b&c=d/é~'|urlencode
lipsum is defined
loop is defined
caller is defined
varargs is defined
1;2
1 2
a b
[1 2]
{'a' 1}
(1
1)
'unclosed
{{ 1 }}
f(x=1, 2)
s.upper(**{'a':1})
s.replace(*['l','L'])
'%s%s'|format(*[1,2])
dict(**{'a':1})
dict(**1)
range(*[1,4])|list
007
1__0
0_0
1_
1.
.5
1.e5
1e
0x
$
a?b
a!b
!a
a&b
a&&b
a||b
true()
none()
1()
'a'()
xs()
d()
in
not
and
if
is
true is
1 is not
x if
*x
**x
xs[]
xs[1,2]
xs[1:2,3]
d[1:2]
1[0]
none[0]
none['a']
html|safe + '<'
'<' + html|safe
'<' + (html|safe)
(html|safe) + '<' ~ '>'
(html|e) * 2
(html|e)|e
(html|e)|forceescape
(html|safe)[1:3] + '&'
(html|safe)|upper + '&'
(html|safe)|replace('a', '<') + '&'
(html|safe).replace('a', '<') + '&'
(html|safe).split('x')[0] + '<'
(html|safe).partition('x')|list
(html|safe)|list|first + '<'
(html|safe)|string + '<'
(html|safe)|join('&')
(', '|safe).join([1, '<', html|safe])
'<%s>'|safe|format('<', 1)
('<%s %d>'|safe) % ('<', 1)
('<{}>'|safe).format('<')
'%s' % (html|safe) + '<'
[html|safe]
html|safe is escaped
html is escaped
(html|e)|length
(' <b> '|safe)|trim + '&'
('a b'|safe)|truncate(1, true, '<', 0)
('a'|safe)|indent(2, true) + '<'
('a'|safe)|center(5) + '<'
('a'|safe).ljust(3, '*') + '<'
(html|safe)|reverse + '<'
{'a': 1, 'b c': 'é/'}|urlencode
[('a', 1), ('b', 2)]|urlencode
[1]|urlencode
'{:_}|{:_x}|{:08,}|{:010,.2f}'.format(1234567, 1048576, 1234, 1234.5)
'{:.3}|{:.1}|{:.10}'.format(123.0, 0.5, 1e20)
'{:#x}|{:#o}|{:+.1e}|{:c}'.format(255, 8, 12345.678, 65)
'{:>{}}|{:{w}}'.format('a', 5, 'b', w=3)
'{0}{}'.format(1, 2)
'{[0]}'.format([1])
'{!a}'.format('é😀')
'%a|%c|%c' % ('é', 65, 'b')
'%.3d|%05.3d|%+.4x' % (5, 5, 255)
'{:+}'.format('a')
'{:,}'.format('a')
'{:=5}'.format('a')
'%d' % undefined_name
'a' % undefined_name
'a' % xs
'aB ß'.swapcase()
'Hello World'.istitle()
'Hello world'.istitle()
'é'.isascii()
'a\n'.isprintable()
'a\tb\n\tc'.expandtabs(4)
'{a}'.format_map({'a': 1})
xs is filter
d is test
undefined_name.__class__ is defined
undefined_name.__nothing__
{'__x__': 1}.__x__
(xs|map('nope')) is defined
xs|map('nope')|first
['a', 1]|map('int')|first
(xs|batch(0))|list
xs|batch(-1)|list
'7'|int(base=1)
[1, 2]|truncate(5)
undefined_name|truncate
9007199254740993 / 3
"""

# Whole templates.
TEMPLATES = [
    # What the differential test found.
    "{% for x in xs %}{% set y %}a{% if x == 1 %}{% break %}{% endif %}b{% endset %}{{ y }}{% endfor %}",
    "{% for x in xs %}{% filter upper %}a{% if x == 1 %}{% continue %}{% endif %}b{% endfilter %}{% endfor %}",
    "{% for x in xs %}{% for y in [] %}{% else %}{% break %}{% endfor %}n{% endfor %}",
    "{% for x in xs %}{% for y in [] recursive %}{% else %}{% break %}{% endfor %}n{% endfor %}",
    "{% for x in xs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "{% for x in [1] %}a{% continue %}b{% else %}e{% endfor %}", "{% for x in xs %}a{% break %}b{% else %}e{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in [] %}{{ x|nope }}{% endfor %}", "{% if false %}{{ x|nope }}{% endif %}", "{{ 1 if true else x|nope }}",
    "{% if false %}{% for x in xs %}{{ x|nope }}{% endfor %}{% endif %}", "{% if false %}{{ x is nope }}{% endif %}",
    "{% macro m(x=1) %}{{ caller }}{{ caller.name }}{{ m.catch_kwargs }}{{ m.caller }}{% endmacro %}{% call m() %}{% endcall %}",
    "{% macro m() %}{{ varargs }}{{ m.catch_varargs }}{% endmacro %}{{ m(1) }}",
    "{% filter e %}<a>{% endfilter %}", "{% set x | e %}<a>{% endset %}{{ x + '<' }}", "{% set x %}{{ html|safe }}{% endset %}{{ x + '<' }}",
    "{% for x in xs %}{{ x }},{% endfor %}",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}",
    "{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{% else %}none{% endfor %}",
    "{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nope %}a{% else %}undefined{% endfor %}",
    "{% for x in none %}a{% endfor %}",
    "{% for x in 5 %}a{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}{% endfor %}",
    "{% for a, b in nested %}{{ a }}|{{ b }};{% endfor %}",
    "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in xs %}x{% endfor %}",
    "{% for c in 'añ😀' %}[{{ c }}]{% endfor %}",
    "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1,1,2,2,1] %}{{ loop.changed(x) }};{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in xs %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in nested recursive %}{% if x is iterable %}[{{ loop(x) }}]{% else %}{{ x }}.{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for x in xs %}{{ loop(x) }}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "{% break %}", "{% if true %}{% continue %}{% endif %}",
    "{% for x in xs %}{% set y = x %}{% endfor %}{{ y }}",
    "{% set y = 0 %}{% for x in xs %}{% set y = y + x %}{{ y }};{% endfor %}{{ y }}",
    "{% set ns = namespace(y=0) %}{% for x in xs %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}{{ ns }}",
    "{% set d.x = 1 %}", "{% set nope.x = 1 %}",
    "{% if true %}{% set y = 1 %}{% endif %}{{ y }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}{{ a }}", "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}",
    "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}",
    "{% set x %}a{{ i }}b{% endset %}{{ x }}{{ x|length }}", "{% set x | upper | trim %} ab {% endset %}[{{ x }}]",
    "{% set x %}{% set y = 1 %}{% endset %}{{ y }}", "{% set x = 1, %}{{ x }}", "{% set 1 = 2 %}", "{% set x.y.z = 2 %}",
    "{% set true = 1 %}", "{% set s = 'mine' %}{{ s }}", "{% for x in xs %}{{ s }}{% set s = x %}{{ s }}{% endfor %}{{ s }}",
    "{% if i > 5 %}a{% elif i > 3 %}b{% else %}c{% endif %}", "{% if n > 5 %}a{% elif n > -5 %}b{% else %}c{% endif %}",
    "{% if nope %}a{% else %}b{% endif %}", "{% if nope.x %}a{% endif %}", "{% if not nope %}a{% endif %}",
    "{% if 1 %}", "{% if 1 %}{% endfor %}", "{% endif %}", "{% nope %}", "{% %}", "{{ }}", "{%", "{{", "{# ", "a{# b #}c", "{# a {# b #} c #}",
    "{% if %}{% endif %}", "{% for %}{% endfor %}", "{% for x xs %}{% endfor %}", "{% for x.y in xs %}{% endfor %}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, z=4) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m() %}{{ caller() }}!{% endmacro %}{% call m() %}body{{ i }}{% endcall %}",
    "{% macro m(xs) %}{% for x in xs %}{{ caller(x) }},{% endfor %}{% endmacro %}{% call(v) m(xs) %}<{{ v }}>{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}b{% endcall %}",
    "{% macro m() %}{% if caller %}{{ caller() }}{% else %}no{% endif %}{% endmacro %}{{ m() }}{% call m() %}y{% endcall %}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro m() %}{{ s }}{% endmacro %}{% set s = 'later' %}{{ m() }}",
    "{% macro m() %}{% set q = 1 %}{{ q }}{% endmacro %}{{ m() }}{{ q }}",
    "{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m() %}  a  {% endmacro %}[{{ m() }}][{{ m()|trim }}]{{ m.name }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ xs|map('string')|map('length')|list }}{{ m(m(m(1))) }}",
    "{% macro m(x) %}{{ x|upper }}{% endmacro %}{{ m('a') ~ m('b') }}{{ m('a') is string }}",
    "{% call nope() %}{% endcall %}", "{% call s %}{% endcall %}",
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aaa{% endfilter %}", "{% filter nope %}a{% endfilter %}",
    "{% filter upper %}{% set q = 1 %}{% endfilter %}{{ q }}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}{% endwith %}",
    "{% raw %}{{ x }}{% endraw %}", "{% raw %}\n {{ x }}\n {% endraw %}\nb", "a {%- raw -%}  {{ x }}  {%- endraw -%} b", "{% raw %}{% raw %}{% endraw %}", "{% raw %} ",
    "  {% raw %} x {% endraw %} y",
    "{% generation %}a{{ i }}{% endgeneration %}b", "{% generation %}{% set y = 1 %}{{ y }}{% endgeneration %}{{ y }}",
    "a\n{% if true %}\nb\n{% endif %}\nc\n", "a\n  {% if true %}  \nb\n  {% endif %}\nc\n\n", "  {%- if true -%}  a  {%- endif -%}  b", "a \n {%- if true %} b{% endif -%} \n c",
    "a\n   {%+ if true %}b{% endif %}", "a\n{% if true +%}\nb{% endif %}", "{{ 1 }}\n{{ 2 }}\n", " {{- 1 -}} \n {{ 2 }}", "\n\n{{ 1 }}\n\n", "x {# c #}\ny", "x\n  {# c #}\ny", "x\n  {#- c -#}\n y", "x {#+ c +#}\n y",
    "a\r\nb\rc\n", "{{ 'a\r\nb' }}", "   {% set x = 1 %}   \n  y", "{% set x = 1 %}{% set y = 2 %}\n{{ x }}", "\t{% if 1 %}\n\tx\n\t{% endif %}\n",
    "{%- for x in xs %}\n  {{ x }}\n{%- endfor %}\n", "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}", "{% for x in xs %}\n\n{{ x }}\n\n{% endfor %}",
    "{{ s", "{{ s }", "{% if s }", "{{ s %}", "}} %} #}", "{ { x } }", "{{'{{'}}{{ '}}' }}", "{{ {'a': {'b': 1}}.a.b }}", "{{ [[1], {'x': (1, 2)}] }}",
    "{% print 1, 2 %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% do xs.append(1) %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}", "{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}c", "{% set j = joiner() %}{{ j() }}{{ j() }}",
    "{% set g = xs|map('string') %}{% for a in g %}{{ a }}{% endfor %}-{% for a in g %}{{ a }}{% endfor %}", "{% set g = xs|select('odd') %}{{ g|first }}{{ g|list }}{{ g|list }}", "{{ (xs|map('string'))|length }}", "{% if xs|select('gt', 9) %}true{% endif %}",
    "{% if (xs|select('gt', 9)|list) %}true{% else %}false{% endif %}", "{% for x in xs|reverse %}{{ x }}{{ loop.last }}{% endfor %}", "{% for b in xs|batch(2) %}{{ b|join('+') }};{% endfor %}", "{% for g in rows|groupby('size') %}{{ g.grouper }}:{{ g.list|length }};{% endfor %}",
    "{% for size, items in rows|groupby('size') %}{{ size }}{{ items|map(attribute='name')|join }};{% endfor %}",
    "{% set x = messages[0] %}{% if x.role == 'system' %}{{ x.content }}{% endif %}{% for m in messages[1:] %}<{{ m['role'] }}>{% endfor %}",
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% elif 'image' in p %}img{% endif %}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}",
    "{% for m in messages %}{% set role = m.role if m.role != 'assistant' else 'model' %}{{ '<start_of_turn>' + role + '\\n' }}{% endfor %}",
    "{{ bos_token }}{% for m in messages if m.role == 'user' %}{{ loop.index0 }}{% endfor %}",
    "{% if messages|selectattr('role', 'equalto', 'system')|list %}sys{% endif %}", "{% set system = messages|selectattr('role','equalto','system')|map(attribute='content')|first %}{{ system }}",
    "{% for m in messages %}{{ m|tojson }}\n{% endfor %}", "{% for x in xs %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{{ xs|map('string')|join(', ') if xs else 'none' }}",
    "{% set a = 'x' %}{% set b = a %}{% set a = 'y' %}{{ a }}{{ b }}", "{% if 'a' in 'abc' and not ('z' in 'abc') %}ok{% endif %}", "{{ 'a' if t }}{{ 'b' if no }}{{ 'c' if not no else 'd' }}",
    "{% set x = namespace(found=false) %}{% for m in messages %}{% if m.role == 'assistant' %}{% set x.found = true %}{% endif %}{% endfor %}{{ x.found }}",
    "{% set _ = namespace(a=[]) %}{% set _.a = _.a + [1] %}{% set _.a = _.a + [2] %}{{ _.a }}", "{{ raise_exception('x') if false else 'fine' }}", "{{ raise_exception() }}",
    "{%- set tools = none -%}{{ tools is none }}{{ tools is defined }}", "{% if not tools is defined %}{% set tools = [] %}{% endif %}{{ tools }}",
    "{% set ns = namespace(l=[]) %}{% for x in xs %}{% set ns.l = ns.l + [x * 2] %}{% endfor %}{{ ns.l }}{{ ns.l|sum }}", "{% for i in range(3) %}{{ i }}{% endfor %}{{ i }}",
    "{% for loop_x in xs %}{% set outer = loop %}{% for y in xs %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for x in xs %}{% if loop.index is divisibleby 2 %}even{% else %}odd{% endif %}{% endfor %}",
    "{% for x in xs %}{{ x }}{% else %}{{ loop }}{% endfor %}", "{% for x in range(2) %}{% for x in range(2) %}{{ x }}{% endfor %}{{ x }}{% endfor %}",
    "{{ x }}{% set x = 1 %}{{ x }}", "{% for k in [1] %}{{ s }}{% endfor %}{% set s = 2 %}", "{% if no %}{% set s = 1 %}{% endif %}{{ s }}", "{% if t %}{% set s = 1 %}{% endif %}{{ s }}", "{% for k in [1, 2] %}{% if k == 2 %}{% set s = 1 %}{% endif %}{{ s }}{% endfor %}",
    "{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 2 %}{{ m() }}", "{% with s = s|upper %}{{ s }}{% endwith %}{{ s }}",
    "{% for x in xs %}{% set s = s ~ x %}{{ s }}{% endfor %}", "{% set a = 1 %}{% macro m(a=a) %}{{ a }}{% endmacro %}{{ m() }}", "{% set x = x + 1 %}", "{% set i = i + 1 %}{{ i }}",
    "{{ '%s' % undefined_name }}", "{{ '{}'.format(undefined_name) }}", "{{ undefined_name ~ 'x' }}", "{{ undefined_name|upper }}", "{{ undefined_name|trim }}", "{{ undefined_name|list }}", "{{ undefined_name|join }}", "{{ undefined_name|first }}", "{{ undefined_name|int }}", "{{ undefined_name|string|length }}",
]


def main():
    assert jinja2.__version__ == "3.1.6", jinja2.__version__
    cases = []
    for line in EXPRESSIONS.strip("\n").replace("\\\nb", "\\\0b").split("\n"):
        template = "{{ " + line.replace("\0", "\n") + " }}"
        cases.append(template)
    cases += TEMPLATES
    out = [{"template": t, "text": render(t, VARS)} for t in dict.fromkeys(cases)]
    # Addresses of Python objects are no answer to compare with.
    out = [c for c in out if c["text"] is None or " at 0x" not in c["text"]]
    body = ",\n".join(json.dumps(c, ensure_ascii=True) for c in out)
    text = '{"jinja2": "%s",\n"variables": %s,\n"cases": [\n%s\n]}\n' % (
        jinja2.__version__, json.dumps(VARS, ensure_ascii=True), body)
    (ROOT / "src/text/jinja/testdata/cases.json").write_text(text)
    print(len(out), "cases,", sum(c["text"] is None for c in out), "of them refused;",
          ENV.__class__.__name__)


if __name__ == "__main__":
    main()
