// As if it were the library's.
#pragma once
