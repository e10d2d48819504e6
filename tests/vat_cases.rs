//! Known VAT cases, looked up in the laws and in the Commission's database of rates, not derived from the rules here.

use std::path::Path;

use chrono::NaiveDate;

use vat_classification::domain::{ProductClass, Taxonomy};
use vat_classification::reference::Reference;

/// Country, class, day, per cent (`-` where the class does not decide it), the goods and where the rate is from.
const CASES: &str = "
DE 490199-00-000 2026-11-01 7    novel; UStG Anlage 2 Nr. 49 a
DE 490290-00-000 2026-11-01 7    magazine; UStG Anlage 2 Nr. 49 b
DE 040120-00-000 2026-11-01 7    milk; UStG Anlage 2 Nr. 4
DE 220110-00-000 2026-11-01 19   mineral water; UStG Anlage 2 Nr. 34 excludes it
DE 220299-00-000 2026-11-01 -    other drinks; UStG Anlage 2 Nr. 35
DE 220299-01-000 2026-11-01 7    milk drink; UStG Anlage 2 Nr. 35
DE 220299-26-000 2026-11-01 19   oat drink; not in UStG Anlage 2
DE 200912-00-000 2026-11-01 19   orange juice; UStG Anlage 2 Nr. 32 excludes it
DE 961900-13-000 2026-11-01 7    tampons, period pants; UStG Anlage 2 Nr. 55
DE 961900-02-000 2026-11-01 19   nappies; not in UStG Anlage 2
DE 961900-00-000 2026-11-01 -    heading 9619; UStG Anlage 2 Nr. 55 names some of it
DE 300490-00-000 2026-11-01 19   medicine; not in UStG Anlage 2
DE 871310-00-000 2026-11-01 7    wheelchair; UStG Anlage 2 Nr. 51
DE 902140-00-000 2026-11-01 7    hearing aid; UStG Anlage 2 Nr. 52 d
DE 060311-00-000 2026-11-01 7    fresh roses; UStG Anlage 2 Nr. 8
DE 060390-00-000 2026-11-01 19   dried flowers; UStG Anlage 2 Nr. 8 is for fresh ones
DE 440111-00-000 2026-11-01 7    firewood; UStG Anlage 2 Nr. 48 a
DE 440131-00-000 2026-11-01 7    wood pellets; UStG Anlage 2 Nr. 48 b
DE 970121-00-000 2026-11-01 7    painting over 100 years old; UStG § 12 Abs. 2 Nr. 12 since 2025
DE 970121-00-000 2024-06-01 19   painting over 100 years old; UStG before 2025
DE 871160-00-000 2026-11-01 19   e-bike; not in UStG Anlage 2
DE 190110-00-000 2026-11-01 7    baby food; UStG Anlage 2 Nr. 31
DE 090121-00-000 2026-11-01 7    roasted coffee; UStG Anlage 2 Nr. 12
DE 030632-00-000 2026-11-01 19   lobster; UStG Anlage 2 Nr. 3 excludes it
DE 160431-00-000 2026-11-01 19   caviar; UStG Anlage 2 Nr. 28 excludes it
DE 230910-00-000 2026-11-01 7    dog food; UStG Anlage 2 Nr. 37
DE 611120-00-000 2026-11-01 19   babies' garments; not in UStG Anlage 2
DE 070190-00-000 2020-10-01 5    potatoes in the second half of 2020; UStG § 28 Abs. 2
DE 847130-00-000 2020-10-01 16   laptop in the second half of 2020; UStG § 28 Abs. 1
DE 852349-16-000 2026-11-01 7    audiobook on CD; UStG Anlage 2 Nr. 50
DE 854143-25-000 2026-11-01 0    balcony solar module; UStG § 12 Abs. 3 since 2023
DE 854143-02-000 2026-11-01 19   solar module for a plant; UStG § 12 Abs. 1
SK 080810-00-000 2026-11-01 5    apples; Zákon 222/2004 príloha 7
GR 090121-00-000 2026-11-01 13   roasted coffee; N. 5144/2024 Annex III A
AT 070200-00-000 2026-11-01 4.9  tomatoes; UStG 1994 Anlage 3
HU 080810-00-000 2026-11-01 27   apples; Áfa tv. 82. §
LV 080810-00-000 2026-11-01 12   apples; PVN likums 42. p.
GB 490199-00-000 2026-11-01 0    novel; VAT Act 1994 Sch. 8 Group 3
GB 490210-00-000 2026-11-01 0    newspaper; VAT Act 1994 Sch. 8 Group 3
GB 611120-00-000 2026-11-01 0    babies' garments; VAT Act 1994 Sch. 8 Group 16
GB 610910-03-000 2026-11-01 0    child's T-shirt; VAT Act 1994 Sch. 8 Group 16
GB 610910-02-000 2026-11-01 20   adult's T-shirt; VAT Act 1994 s. 2
GB 610910-00-000 2026-11-01 -    T-shirts; VAT Act 1994 Sch. 8 Group 16
GB 621210-00-000 2026-11-01 20   brassieres; VAT Act 1994 s. 2
GB 220110-00-000 2026-11-01 20   mineral water; VAT Act 1994 Sch. 8 Group 1 excepted item 4
GB 040120-00-000 2026-11-01 0    milk; VAT Act 1994 Sch. 8 Group 1
GB 220299-26-000 2026-11-01 0    soya milk; Alpro Ltd [2006] UKVAT V19911
GB 961900-13-000 2026-11-01 0    tampons; VAT Act 1994 Sch. 8 Group 19
GB 961900-13-000 2019-06-01 5    tampons before 2021; VAT Act 1994 Sch. 7A Group 4
GB 610821-13-000 2026-11-01 0    period pants; VAT Act 1994 Sch. 8 Group 19 since 2024
GB 610821-13-000 2023-06-01 20   period pants before 2024; VAT Act 1994 s. 2
GB 170490-00-000 2026-11-01 20   sweets; VAT Act 1994 Sch. 8 Group 1 excepted item 2
GB 190531-09-000 2026-11-01 20   chocolate biscuits; VAT Act 1994 Sch. 8 Group 1 excepted item 2
GB 190531-02-000 2026-11-01 0    plain biscuits; VAT Act 1994 Sch. 8 Group 1
GB 210500-00-000 2026-11-01 20   ice cream; VAT Act 1994 Sch. 8 Group 1 excepted item 1
GB 200520-09-000 2026-11-01 20   crisps; VAT Act 1994 Sch. 8 Group 1 excepted item 5
GB 650610-07-000 2026-11-01 0    motorcycle helmet; VAT Act 1994 Sch. 8 Group 16
GB 300490-00-000 2026-11-01 20   medicine over the counter; VAT Act 1994 s. 2
GB 401410-00-000 2026-11-01 5    condoms; VAT Act 1994 Sch. 7A Group 8
GB 440111-00-000 2026-11-01 5    firewood; VAT Act 1994 Sch. 7A Group 1
GB 230910-00-000 2026-11-01 20   dog food; VAT Act 1994 Sch. 8 Group 1 excepted item 6
GB 060311-00-000 2026-11-01 20   roses; VAT Act 1994 s. 2
GB 871160-00-000 2026-11-01 20   e-bike; VAT Act 1994 s. 2
GB 847130-00-000 2009-06-01 15   laptop in 2009; SI 2008/3020
IE 610910-03-000 2026-11-01 0    child's T-shirt; VATCA 2010 Sch. 2
IE 610910-02-000 2026-11-01 23   adult's T-shirt; VATCA 2010 s. 46
IE 490199-00-000 2026-11-01 0    novel; VATCA 2010 Sch. 2
IE 190590-19-000 2026-11-01 0    bread; VATCA 2010 Sch. 2
IE 190590-02-000 2026-11-01 13.5 cake; VATCA 2010 Sch. 3
IE 961900-13-000 2026-11-01 0    tampons; VATCA 2010 Sch. 2
IE 871310-00-000 2026-11-01 0    wheelchair; VATCA 2010 Sch. 2
IE 220110-00-000 2026-11-01 23   mineral water; VATCA 2010 s. 46
IE 440111-00-000 2026-11-01 13.5 firewood; VATCA 2010 Sch. 3
IE 300490-22-000 2026-11-01 0    tablets; VATCA 2010 Sch. 2
LU 610910-03-000 2026-11-01 3    child's T-shirt; Loi TVA annexe B
LU 847130-00-000 2023-06-01 16   laptop in 2023; Loi TVA art. 39
FR 490199-00-000 2026-11-01 5.5  novel; CGI art. 278-0 bis A 3°
FR 490210-00-000 2026-11-01 2.1  newspaper; CGI art. 298 septies
FR 970121-00-000 2026-11-01 5.5  painting; CGI art. 278-0 bis I since 2025
FR 961900-13-000 2026-11-01 5.5  tampons; CGI art. 278-0 bis A 1° bis
FR 220299-00-000 2026-11-01 5.5  oat drink; CGI art. 278-0 bis A 1°
FR 160431-00-000 2026-11-01 20   caviar; CGI art. 278-0 bis A 1° d
AT 040120-00-000 2026-11-01 4.9  milk; UStG 1994 Anlage 3 since July 2026
AT 040120-00-000 2026-06-30 10   milk before July 2026; UStG 1994 Anlage 1
AT 961900-13-000 2026-11-01 0    tampons; UStG 1994 § 10 since 2026
AT 961900-13-000 2025-06-01 10   tampons before 2026; UStG 1994 Anlage 1
AT 490199-00-000 2026-11-01 10   novel; UStG 1994 Anlage 1
AT 060311-00-000 2026-11-01 13   roses; UStG 1994 Anlage 2
AT 440111-00-000 2026-11-01 13   firewood; UStG 1994 Anlage 2
AT 090121-00-000 2026-11-01 20   roasted coffee; not in UStG 1994 Anlage 1
ES 190590-19-000 2026-11-01 4    common bread; Ley 37/1992 art. 91.Dos
ES 961900-13-000 2026-11-01 4    tampons; Ley 37/1992 art. 91.Dos since 2023
ES 220210-00-000 2026-11-01 21   lemonade; Ley 37/1992 art. 91.Uno excludes it since 2021
ES 150920-00-000 2026-11-01 4    olive oil; Ley 37/1992 art. 91.Dos since 2025
IT 190219-00-000 2026-11-01 4    pasta; DPR 633/1972 Tabella A parte II
IT 440131-00-000 2026-11-01 22   wood pellets; DPR 633/1972 Tabella A parte III n. 98 excludes them
IT 440111-00-000 2026-11-01 10   firewood; DPR 633/1972 Tabella A parte III n. 98
IT 970121-00-000 2026-11-01 5    painting; DL 95/2025 art. 9
NL 220210-00-000 2026-11-01 9    lemonade; Wet OB 1968 Tabel I a.1
NL 060311-00-000 2026-11-01 9    roses; Wet OB 1968 Tabel I a.48
NL 490199-00-000 2018-06-01 6    novel before 2019; Wet OB 1968 Tabel I a.30
CZ 490199-00-000 2026-11-01 0    novel; Zákon 235/2004 § 71i
CZ 220299-26-000 2026-11-01 12   oat drink; Zákon 235/2004 příloha 3
CZ 220110-00-000 2026-11-01 21   mineral water; Zákon 235/2004 příloha 3 excludes drinks
PL 961900-00-000 2026-11-01 5    heading 9619; Ustawa o VAT zał. 10
PL 090121-00-000 2026-11-01 23   roasted coffee; not in Ustawa o VAT zał. 3 and 10
PL 490199-00-000 2026-11-01 5    novel; Ustawa o VAT zał. 10
SE 190590-00-000 2026-11-01 6    bread; ML 9 kap. 3 § from April 2026
SE 190590-00-000 2026-03-31 12   bread before April 2026; ML 9 kap. 3 §
SE 490199-00-000 2026-11-01 6    novel; ML 9 kap. 9 §
FI 300490-00-000 2026-11-01 13.5 medicine; AVL 85 §
FI 490199-00-000 2026-11-01 13.5 novel; AVL 85 §
DK 490210-00-000 2026-11-01 0    newspaper; Momsloven § 34
DK 190590-00-000 2026-11-01 25   bread; Momsloven § 33
HU 040120-00-000 2026-11-01 5    milk; Áfa tv. 3. melléklet
HR 440131-00-000 2026-11-01 5    wood pellets; ZPDV čl. 38 until March 2027
HR 440131-00-000 2027-04-01 13   wood pellets from April 2027; ZPDV čl. 38 st. 3
EE 490199-00-000 2026-11-01 9    novel; KMS § 15
EE 847130-00-000 2026-11-01 24   laptop; KMS § 15 since July 2025
EE 847130-00-000 2025-06-30 22   laptop before July 2025; KMS § 15
BE 151710-00-000 2026-11-01 12   margarine; AR n° 20 tableau B
BE 220210-00-000 2026-11-01 6    lemonade; AR n° 20 tableau A
RO 490199-00-000 2026-11-01 11   novel; Codul fiscal art. 291 since August 2025
RO 847130-00-000 2025-07-31 -    laptop before August 2025; the rules are known since then
SK 490199-00-000 2026-11-01 5    novel; Zákon 222/2004 príloha 7
SK 170490-00-000 2026-11-01 23   sweets; Zákon 222/2004 § 27 since 2026
LT 490199-00-000 2026-11-01 5    novel; PVMĮ 19 str. since 2026
LT 490199-00-000 2025-06-01 9    novel before 2026; PVMĮ 19 str.
LV 190590-19-000 2026-11-01 12   fresh bread; PVN likums 42. p. from July 2026
CY 961900-00-000 2026-11-01 0    heading 9619 until the end of 2026; decree under N.95(I)/2000
PT 220421-00-000 2026-11-01 13   wine; CIVA lista II
GR 490199-00-000 2026-11-01 6    novel; N. 5144/2024 Annex III
MT 300490-00-000 2026-11-01 0    medicine; Cap. 406 Fifth Schedule
SI 490199-00-000 2026-11-01 5    novel; ZDDV-1 priloga IV
BG 490199-00-000 2026-11-01 9    novel; ZDDS art. 66a
CH 490199-00-000 2026-11-01 2.6  novel; MWSTG Art. 25 Abs. 2
CH 300490-00-000 2026-11-01 2.6  medicine; MWSTG Art. 25 Abs. 2
CH 220110-00-000 2026-11-01 2.6  mineral water; MWSTG Art. 25 Abs. 2
CH 220300-00-000 2026-11-01 8.1  beer; MWSTG Art. 25 Abs. 1
CH 961900-13-000 2026-11-01 2.6  tampons; MWSTG Art. 25 Abs. 2 since 2025
CH 961900-13-000 2024-11-01 8.1  tampons before 2025; MWSTG Art. 25 Abs. 1
CH 847130-00-000 2023-06-01 7.7  laptop in 2023; MWSTG Art. 25 Abs. 1
DE 190590-00-000 2026-11-21 7    bread and cakes; UStG Anlage 2 Nr. 31
DE 170490-00-000 2026-11-21 7    sweets; UStG Anlage 2 Nr. 29
DE 180690-00-000 2026-11-21 7    chocolates; UStG Anlage 2 Nr. 30
DE 070190-00-000 2026-11-21 7    potatoes; UStG Anlage 2 Nr. 10
DE 220190-01-000 2026-11-21 7    tap water; UStG Anlage 2 Nr. 34
DE 401410-00-000 2026-11-21 19   condoms; not in UStG Anlage 2
DE 871200-00-000 2026-11-21 19   bicycle; not in UStG Anlage 2
GB 190590-02-000 2026-11-21 0    bread; VAT Act 1994 Sch. 8 Group 1
GB 070190-00-000 2026-11-21 0    potatoes; VAT Act 1994 Sch. 8 Group 1
GB 090121-00-000 2026-11-21 0    roasted coffee; VAT Act 1994 Sch. 8 Group 1 overriding item 4
GB 190110-00-000 2026-11-21 0    baby food; VAT Act 1994 Sch. 8 Group 1
GB 180632-00-000 2026-11-21 20   bar of chocolate; VAT Act 1994 Sch. 8 Group 1 excepted item 2
GB 200912-00-000 2026-11-21 20   orange juice; VAT Act 1994 Sch. 8 Group 1 excepted item 4
GB 200811-09-000 2026-11-21 20   salted peanuts; VAT Act 1994 Sch. 8 Group 1 excepted item 5
GB 961900-03-000 2026-11-21 0    babies' nappies; VAT Act 1994 Sch. 8 Group 16
GB 940180-03-000 2026-11-21 5    child's car seat; VAT Act 1994 Sch. 7A Group 5
GB 854143-00-000 2026-11-21 20   solar module without installation; VAT Act 1994 s. 2
GB 970121-00-000 2026-11-21 20   painting; VAT Act 1994 s. 2
IE 060311-00-000 2026-11-21 13.5 roses; VATCA 2010 Sch. 3
IE 871160-00-000 2026-11-21 23   e-bike; VATCA 2010 s. 46
IE 220299-26-000 2026-11-21 0    soya milk; VATCA 2010 Sch. 2
IE 170490-00-000 2026-11-21 23   sweets; VATCA 2010 Sch. 2 para. 8 table 1
IE 090121-00-000 2026-11-21 0    roasted coffee; VATCA 2010 Sch. 2
IE 490210-29-000 2026-11-21 0    newspaper; VATCA 2010 Sch. 2 since 2023
IE 230910-00-000 2026-11-21 23   dog food; VATCA 2010 s. 46
IE 640391-03-000 2026-11-21 0    children's shoes; VATCA 2010 Sch. 2 para. 10
FR 190590-00-000 2026-11-21 5.5  bread; CGI art. 278-0 bis A 1°
FR 300490-02-000 2026-11-21 10   medicine that is not reimbursed; CGI art. 278 quater
FR 300490-23-000 2026-11-21 2.1  medicine that is reimbursed; CGI art. 281 octies
FR 401410-00-000 2026-11-21 5.5  condoms; CGI art. 278-0 bis A
FR 060311-00-000 2026-11-21 10   roses; CGI art. 278 bis
FR 440111-00-000 2026-11-21 10   firewood; CGI art. 278 bis 3° bis
FR 170490-00-000 2026-11-21 20   sweets; CGI art. 278-0 bis A 1° a excludes them
FR 230910-00-000 2026-11-21 20   dog food; CGI art. 278
AT 190590-19-000 2026-11-21 4.9  bread; UStG 1994 Anlage 3 (CN 1905 90 30)
AT 070954-00-000 2026-11-21 10   shiitake; UStG 1994 Anlage 3 excludes CN 0709 54
AT 040640-00-000 2026-11-21 10   cheese; UStG 1994 Anlage 1
AT 080410-00-000 2026-11-21 10   dates; UStG 1994 Anlage 1
AT 401410-00-000 2026-11-21 0    condoms; UStG 1994 § 10 since 2026
AT 300490-00-000 2026-11-21 10   medicine; UStG 1994 § 10 Abs. 2 Z 5
AT 854143-25-000 2025-03-31 0    solar module; UStG 1994 § 28 Abs. 62
AT 854143-25-000 2025-04-01 20   solar module after the zero rate ended; UStG 1994 § 10 Abs. 1
ES 040120-00-000 2026-11-21 4    milk; Ley 37/1992 art. 91.Dos.1.1º
ES 300490-02-000 2026-11-21 4    medicine for people; Ley 37/1992 art. 91.Dos.1.3º
ES 401410-00-000 2026-11-21 4    condoms; Ley 37/1992 art. 91.Dos.1.7º since 2023
ES 871310-00-000 2026-11-21 4    wheelchair; Ley 37/1992 art. 91.Dos.1.4º
ES 060311-00-000 2026-11-21 10   roses; Ley 37/1992 art. 91.Uno.1.8º
IT 490199-00-000 2026-11-21 4    novel; DPR 633/1972 Tabella A parte II n. 18
IT 090121-00-000 2026-11-21 22   roasted coffee; DPR 633/1972 art. 16
IT 961900-03-000 2026-11-21 10   babies' nappies; L. 213/2023 art. 1 c. 45
IT 230910-00-000 2026-11-21 22   dog food; DPR 633/1972 art. 16
IT 871310-00-000 2026-11-21 4    wheelchair; DPR 633/1972 Tabella A parte II n. 31
NL 854143-25-000 2026-11-21 0    solar module at a dwelling; Wet OB 1968 Tabel II a.10
NL 871160-00-000 2026-11-21 21   e-bike; Wet OB 1968 art. 9
NL 490199-00-000 2026-11-21 9    novel; Wet OB 1968 Tabel I a.30
NL 230910-00-000 2026-11-21 21   dog food; Wet OB 1968 art. 9
BE 490210-00-000 2026-11-21 0    daily newspaper; administrative decision on the press
BE 871310-00-000 2026-11-21 6    wheelchair; AR n° 20 tableau A XXIII
BE 961900-13-000 2026-11-21 6    tampons; AR n° 20 tableau A XVII
BE 380891-06-000 2026-02-28 12   plant protection product before March 2026; AR n° 20 tableau B III
BE 380891-06-000 2026-11-21 21   plant protection product since March 2026; AR n° 20
PL 190110-00-000 2026-11-21 5    baby food; Ustawa o VAT zał. 10
PL 490210-00-000 2026-11-21 8    newspaper; Ustawa o VAT zał. 3
PL 300490-00-000 2026-11-21 8    medicine; Ustawa o VAT zał. 3
SE 300490-02-000 2026-11-21 25   medicine over the counter; ML 9 kap. 2 §
SE 220110-00-000 2026-11-21 6    mineral water; ML 9 kap. 3 § from April 2026
SE 961900-00-000 2026-11-21 25   sanitary towels and nappies; ML 9 kap. 2 §
FI 040120-00-000 2026-11-21 13.5 milk; AVL 85 § since 2026
FI 040120-00-000 2025-12-31 14   milk before 2026; AVL 85 §
FI 961900-00-000 2026-11-21 13.5 sanitary towels and nappies; AVL 85 §
FI 490210-31-000 2026-11-21 10   newspaper by subscription; AVL 85 a §
FI 490210-02-000 2026-11-21 25.5 single newspaper; AVL 84 §
DK 490199-00-000 2026-11-21 25   novel; Momsloven § 33, a zero rate is proposed and not found in force
DK 961900-00-000 2026-11-21 25   sanitary towels; Momsloven § 33
CZ 490290-00-000 2026-11-21 12   magazine; Zákon 235/2004 příloha 3
CZ 300490-00-000 2026-11-21 12   medicine; Zákon 235/2004 příloha 3
CZ 060311-00-000 2026-11-21 21   roses; Zákon 235/2004 § 47
SK 190590-19-000 2026-11-21 5    bread; Zákon 222/2004 príloha 7
SK 020319-00-000 2026-11-21 5    fresh pork; Zákon 222/2004 príloha 7 ex 0203
SK 020329-00-000 2026-11-21 19   frozen pork; Zákon 222/2004 príloha 7 bod 1
SK 070610-00-000 2026-11-21 19   carrots; Zákon 222/2004 príloha 7 bod 1
SK 180690-00-000 2026-11-21 23   chocolates; Zákon 222/2004 § 27 since 2026
SK 180690-00-000 2025-11-21 19   chocolates in 2025; Zákon 222/2004 príloha 7 bod 1
SK 200989-33-000 2026-11-21 23   sweetened nectar; Zákon 222/2004 § 27 since 2026
SK 220110-00-000 2026-11-21 19   mineral water; Zákon 222/2004 príloha 7 bod 1
SK 271600-00-000 2026-11-21 19   electricity; Zákon 222/2004 príloha 7 bod 1
HU 190590-00-000 2026-11-21 18   bread; Áfa tv. 3/A. melléklet
HU 300490-02-000 2026-11-21 5    medicine for people; Áfa tv. 3. melléklet
HU 961900-00-000 2026-11-21 27   sanitary towels and nappies; Áfa tv. 82. §
RO 180690-00-000 2026-11-21 21   chocolates; Codul fiscal art. 291 alin. (1)
RO 440131-00-000 2026-11-21 11   wood pellets; Codul fiscal art. 291 alin. (2) i), j)
RO 490590-00-000 2026-11-21 11   map; Codul fiscal art. 291 alin. (2) g), heading 4905
RO 220210-00-000 2026-11-21 21   lemonade; Codul fiscal art. 291 alin. (2) b) excludes 2202
BG 190110-00-000 2026-11-21 9    baby food; ZDDS art. 66a
BG 961900-03-000 2026-11-21 9    babies' nappies; ZDDS art. 66a
BG 190590-00-000 2026-11-21 20   bread since July 2024; ZDDS art. 66
HR 961900-03-000 2026-11-21 13   babies' nappies; ZPDV čl. 38 st. 3
HR 961900-13-000 2026-11-21 5    tampons; ZPDV čl. 38 st. 2
HR 490210-00-000 2026-11-21 5    daily newspaper; ZPDV čl. 38 st. 2
HR 170199-00-000 2026-11-21 13   sugar; ZPDV čl. 38 st. 3
HR 151710-00-000 2026-11-21 5    margarine; ZPDV čl. 38 st. 2 since April 2022
SI 190590-00-000 2026-11-21 9.5  bread; ZDDV-1 priloga I
SI 220210-00-000 2026-11-21 22   lemonade; ZDDV-1 priloga I excludes it since 2025
LT 440111-14-000 2025-06-01 9    firewood for homes before 2026; PVMĮ 19 str. 3 d.
LT 440111-14-000 2026-11-21 21   firewood since 2026; PVMĮ 19 str. 1 d.
LT 300490-23-000 2026-11-21 5    reimbursed medicine; PVMĮ 19 str. 4 d.
LV 300490-00-000 2026-11-21 12   medicine; PVN likums 42. p. 1. d.
LV 490199-00-000 2026-11-21 5    novel; PVN likums 42. p.
EE 300490-00-000 2026-11-21 9    medicine; KMS § 15 lg 2
EE 490210-00-000 2024-06-01 5    newspaper before 2025; KMS § 15 lg 4
EE 490210-00-000 2026-11-21 9    newspaper; KMS § 15 lg 2
CY 070200-00-000 2026-11-21 0    tomatoes in 2026; K.D.P. 337/2025
CY 070200-00-000 2027-01-01 5    tomatoes from 2027; N.95(I)/2000 Schedule 5
CY 080430-00-000 2026-11-21 5    pineapples, which the decree does not name; N.95(I)/2000 Schedule 5
CY 490199-00-000 2026-11-21 3    novel; N.95(I)/2000 Schedule 15
MT 190590-02-000 2026-11-21 0    bread; Cap. 406 Fifth Schedule part 4
MT 490199-00-000 2026-11-21 5    novel; Cap. 406 Eighth Schedule
PT 190590-19-000 2026-11-21 6    bread; CIVA lista I 1.1.5
PT 220110-00-000 2026-11-21 13   mineral water; CIVA lista II 1
PT 961900-13-000 2026-11-21 6    tampons; CIVA lista I 2.5
GR 961900-13-000 2026-11-21 6    tampons; N. 5144/2024 Annex III B
GR 961900-03-000 2026-11-21 13   babies' nappies; N. 5144/2024 Annex III A
GR 040120-00-000 2026-11-21 13   milk; N. 5144/2024 Annex III A
LU 040120-00-000 2026-11-21 3    milk; Loi TVA annexe B
LU 060311-00-000 2026-11-21 8    roses; Loi TVA annexe A
CH 190590-00-000 2026-11-21 2.6  bread; MWSTG Art. 25 Abs. 2
CH 060311-00-000 2026-11-21 2.6  roses; MWSTG Art. 25 Abs. 2
CH 230910-00-000 2026-11-21 2.6  dog food; MWSTG Art. 25 Abs. 2
CH 961900-02-000 2026-11-21 8.1  nappies; MWSTG Art. 25 Abs. 1
CH 871310-00-000 2026-11-21 8.1  wheelchair; MWSTG Art. 25 Abs. 1
LI 220300-00-000 2026-11-21 8.1  beer; MWSTG Art. 25 Abs. 1
LI 040120-00-000 2026-11-01 2.6  milk; MWSTG Art. 25 Abs. 2
";

/// Cases that the table must have, so that none gets lost.
const MIN_CASES: usize = 60;

fn reference() -> Reference {
    match Reference::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("models")) {
        Ok(reference) => reference,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn known_cases_have_the_rate_of_the_law() {
    let reference = reference();
    let mut wrong = Vec::new();
    let cases: Vec<&str> = CASES.lines().filter(|line| !line.is_empty()).collect();
    assert!(cases.len() >= MIN_CASES);
    for case in cases {
        let mut cells = case.split_whitespace();
        let mut cell = || cells.next().expect("a cell");
        let (country, class, day, wanted) = (cell(), cell(), cell(), cell());
        let class: ProductClass = class.parse().expect("a class");
        let day: NaiveDate = day.parse().expect("a day");
        let taxonomy = Taxonomy::ALL.into_iter().find(|taxonomy| taxonomy.countries().contains(&country));
        let taxonomy = taxonomy.expect("a supported country");
        if !reference.nomenclature(taxonomy).contains(class.code) {
            wrong.push(format!("{case}: there is no such class"));
            continue;
        }
        if !reference.vat.defines_segment(taxonomy, class.code, class.segment) {
            wrong.push(format!("{case}: the class has no such segment"));
            continue;
        }
        let answer = reference.vat.sufficiency(reference.nomenclature(taxonomy), class, day);
        let found = answer.countries.iter().find(|found| found.country == country).expect("an answer");
        let rate = found.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        if rate != wanted {
            wrong.push(format!("{case}: found {rate}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn both_ways_to_ask_for_sufficiency_agree_for_every_class() {
    let reference = reference();
    let day = "2026-11-01".parse().expect("a day");
    for taxonomy in Taxonomy::ALL {
        let nomenclature = reference.nomenclature(taxonomy);
        for code in nomenclature.codes() {
            let class = ProductClass::plain(code);
            let full = reference.vat.sufficiency(nomenclature, class, day).sufficient;
            assert_eq!(reference.vat.is_sufficient(nomenclature, class, day), full, "{taxonomy} {class}");
        }
    }
}

#[test]
fn every_country_says_how_complete_its_rules_are() {
    let reference = reference();
    let told: Vec<(&str, &str)> = reference.vat.completeness().collect();
    assert_eq!(told.len(), 30);
    assert!(told.iter().all(|(_, text)| text.len() > 20), "{told:?}");
}
